import html
import re
from html.parser import HTMLParser

import pytest

from serving.schemas import FoundLine, FoundWord, ImageSize, ReadResponse
from ui.read_result import NOTHING, about, refusal, show

SQUARE = [(10.0, 20.5), (60.0, 20.5), (60.0, 40.0), (10.0, 40.0)]


def found(text="Open", confidence=0.97, angle=0.0):
    return FoundWord(text=text, confidence=confidence, detection_confidence=0.9, polygon=SQUARE, angle=angle)


def answer_of(words, lines):
    """An answer with these words; lines are a block and numbers of words."""
    written = [FoundLine(text="", polygon=SQUARE, words=own, block=block) for block, own in lines]
    return ReadResponse(image=ImageSize(width=640, height=480), text="", lines=written, words=words, models=[])


class Tags(HTMLParser):
    """All tags with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def of(self, kind):
        return [attributes for _, attributes in self.found if kind in (attributes.get("class") or "").split()]


def test_each_word_has_a_frame_in_pixels_of_the_picture():
    tags = Tags(show(answer_of([found()], [(0, [0])]), "gradio_api/file=/a.jpg", "a.jpg"))
    (svg,) = (attributes for tag, attributes in tags.found if tag == "svg")
    assert svg["viewbox"] == "0 0 640 480"
    assert [attributes["points"] for tag, attributes in tags.found if tag == "polygon"] == [
        "10,20.5 60,20.5 60,40 10,40"
    ] * 2
    (box,) = tags.of("rl-box")
    assert box["aria-label"] == "Open, 97% sure, level"
    assert "tabindex" in box


def test_lines_are_list_items_in_reading_order_and_blocks_are_lists():
    words = [found(text) for text in ("two", "one", "three", "four")]
    text = show(answer_of(words, [(0, [1, 0]), (0, [2]), (1, [3])]), "", "a.jpg")
    lists = [re.findall(r"<li>(.*?)</li>", each) for each in re.findall(r"<ol>(.*?)</ol>", text)]
    plain = [[re.sub("<[^>]*>", "", line) for line in lines] for lines in lists]
    assert plain == [["one two", "three"], ["four"]]
    assert [box["data-word"] for box in Tags(text).of("rl-box")] == ["1", "0", "2", "3"]


def test_text_of_a_stranger_stays_text():
    hostile = "\"><script>alert('1')</script><img src=x onerror=alert(1)>"
    text = show(answer_of([found(hostile)], [(0, [0])]), 'x" onload="y', hostile)
    tags = Tags(text)
    assert [tag for tag, _ in tags.found if tag in ("img", "script")] == ["img"]
    assert all("onload" not in attributes and "onerror" not in attributes for _, attributes in tags.found)
    (page,) = tags.of("rl-page")
    assert page["data-name"] == hostile
    assert ReadResponse.model_validate_json(page["data-answer"]).words[0].text == hostile
    assert f">{html.escape(hostile)}</span>" in text


@pytest.mark.parametrize(("confidence", "kinds"), [(0.69, 1), (0.7, 0)])
def test_doubtful_words_are_marked_in_picture_and_text(confidence, kinds):
    tags = Tags(show(answer_of([found(confidence=confidence)], [(0, [0])]), "", "a.jpg"))
    assert len(tags.of("rl-doubtful")) == 2 * kinds


@pytest.mark.parametrize(("width", "count"), [(640, 0), (660, 1)])
def test_small_words_have_thin_frames(width, count):
    answer = answer_of([found()], [(0, [0])])
    answer.image.width = width
    assert len(Tags(show(answer, "", "a.jpg")).of("rl-small")) == count


@pytest.mark.parametrize(
    ("confidence", "angle", "text"),
    [
        (0.9996, 0.0, "99% sure, level"),
        (1.0, -1.9, "100% sure, level"),
        (0.305, 12.4, "30% sure, turned 12° clockwise"),
        (0.5, -90.0, "50% sure, turned 90° anticlockwise"),
        (0.5, 178.5, "50% sure, upside down"),
        (0.5, -180.0, "50% sure, upside down"),
    ],
)
def test_about_a_word(confidence, angle, text):
    assert about(found(confidence=confidence, angle=angle)) == text


def test_no_words_give_a_hint():
    assert show(answer_of([], []), "", "a.jpg") == NOTHING
    assert "No words found" in NOTHING
    assert "other scripts are not" in NOTHING


def test_a_refusal_is_a_harmless_sentence():
    assert ">&lt;b&gt; is no picture.</p>" in refusal("<b> is no picture")
