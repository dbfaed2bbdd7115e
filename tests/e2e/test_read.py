"""The Read tab in a real browser."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from PIL import ExifTags, Image, ImageDraw, ImageFont
from playwright.sync_api import expect

from serving.schemas import FoundLine, FoundWord, ImageSize, ReadResponse
from ui import read_result
from ui.read import SCRIPT

SIZE, LETTERS = (700, 500), 50
PATIENCE = 30_000  # milliseconds for a picture to be read, on a machine that has other things to do
HOSTILE = "<img src=x onerror=alert(1)>"
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
# Puts a result in the place of the one that Gradio shows, with a script of its own.
MOUNT = """([html, script]) => {
  const old = document.querySelector("#read-result .prose"), element = old.cloneNode();
  old.replaceWith(element);
  element.innerHTML = html;
  Function("element", "trigger", "watch", script)(element, () => {}, (_, begin) => begin());
}"""


def draw_sign(turn):
    """A sign with two words, turned against the clock; also where the words are, [4] corners each."""
    picture, places = Image.new("RGB", SIZE, (250, 246, 236)), {}
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(LETTERS)
    for text, y in (("Books", 190), ("Honey", 310)):
        pen.text((350, y), text, (30, 60, 40), font, anchor="mm")
        left, top, right, bottom = pen.textbbox((350, y), text, font, anchor="mm")
        places[text] = [_turned(*point, turn) for point in ((left, top), (right, top), (right, bottom), (left, bottom))]
    return picture.rotate(turn, Image.Resampling.BICUBIC, fillcolor=(250, 246, 236)), places


def _turned(x, y, turn):
    cosine, sine = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    x, y = x - SIZE[0] / 2, y - SIZE[1] / 2
    return SIZE[0] / 2 + cosine * x + sine * y, SIZE[1] / 2 - sine * x + cosine * y


@pytest.fixture(autouse=True)
def read_tab(page):
    page.get_by_role("tab", name="Read").click()


@pytest.fixture
def tilted(page, tmp_path):
    """A sign turned by 15°, read; gives where its words are."""
    picture, places = draw_sign(15)
    picture.save(tmp_path / "tilted.png")
    upload(page, tmp_path / "tilted.png")
    expect(box(page, "Books")).to_be_visible(timeout=PATIENCE)
    return places


def show(page, texts, lines):
    """Mount an answer with these words and how sure they are, below one another; lines are blocks and their words."""
    words = [
        FoundWord(
            text=text,
            confidence=confidence,
            detection_confidence=0.9,
            polygon=[(20, 40 * n + 5), (180, 40 * n + 5), (180, 40 * n + 35), (20, 40 * n + 35)],
            angle=0.4 if n else -90.0,
        )
        for n, (text, confidence) in enumerate(texts)
    ]
    found = [FoundLine(text="", polygon=words[own[0]].polygon, words=own, block=block) for block, own in lines]
    size = ImageSize(width=200, height=40 * len(words))
    answer = ReadResponse(image=size, text="", lines=found, words=words, models=[])
    page.wait_for_load_state("networkidle")  # what the page asks for by itself is not asked for by the result
    page.evaluate(MOUNT, [read_result.show(answer, PIXEL, "my sign.jpg"), SCRIPT])
    return answer


@pytest.fixture
def doubts(page):
    """Sure and unsure words, some of them hostile, in three blocks."""
    texts = (("Open", 0.95), (HOSTILE, 0.8), ("\"A&B'", 0.5), ("{{value}}${1}", 0.75), ("smudge", 0.1))
    return show(page, texts, ((0, [0, 1]), (1, [2]), (1, [3]), (2, [4])))


def result(page):
    return page.locator("#read-result")


def upload(page, file):
    page.locator("#word-picture input[type=file]").set_input_files(file)


def box(page, text):
    return page.get_by_role("option", name=re.compile(rf"^{re.escape(text)}, "))


def word(page, text):
    return page.locator(".rl-seen").get_by_text(text, exact=True)


def slide(page, value):
    page.get_by_role("slider").fill(str(value))


def assert_over(page, text, corners):
    """The frame of a word covers the place where it was drawn, as the picture is shown."""
    shown, drawn = page.locator(".rl-stage img").bounding_box(), box(page, text).locator("polygon").last.bounding_box()
    assert shown["width"] / shown["height"] == pytest.approx(SIZE[0] / SIZE[1], rel=0.01)
    scale = shown["width"] / SIZE[0]
    xs, ys = [shown["x"] + scale * x for x, _ in corners], [shown["y"] + scale * y for _, y in corners]
    for low, size, known in (("x", "width", xs), ("y", "height", ys)):
        assert drawn[low] == pytest.approx(min(known), abs=0.5 * LETTERS * scale)
        assert drawn[low] + drawn[size] == pytest.approx(max(known), abs=0.5 * LETTERS * scale)


def is_active(locator):
    expect(locator).to_have_class(re.compile("rl-active"))


def downloaded(page, name):
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name).click()
    return waiting.value.suggested_filename, waiting.value.path().read_text()


def test_a_stranger_knows_what_to_do(page):
    expect(result(page)).to_contain_text("Drop a picture with words in it")
    expect(result(page)).to_contain_text("other scripts are not")


def test_words_are_framed_at_their_angle_and_written_beside(page, tilted):
    expect(result(page).locator("li")).to_have_text(["Books", "Honey"])
    expect(result(page).get_by_role("heading")).to_have_text("2 words in 2 lines")
    expect(page.locator("#word-picture")).to_be_hidden()
    for text, corners in tilted.items():
        assert_over(page, text, corners)
        points = box(page, text).locator("polygon").last.get_attribute("points")
        (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in points.split()[:2])
        assert math.degrees(math.atan2(y1 - y0, x1 - x0)) == pytest.approx(-15, abs=6)
    assert page.complaints == []


def test_a_frame_and_its_word_light_up_together(page, tilted):
    note = page.locator(".rl-tag")
    box(page, "Books").hover()
    is_active(word(page, "Books"))
    expect(note).to_contain_text(re.compile(r"Books\d+% sure, turned \d+° anticlockwise"))
    word(page, "Honey").hover()
    is_active(box(page, "Honey"))
    expect(box(page, "Honey")).to_have_attribute("aria-selected", "true")
    expect(note).to_contain_text("Honey")
    expect(page.locator(".rl-active")).to_have_count(2)
    page.mouse.move(5, 5)
    expect(note).to_be_hidden()
    assert page.complaints == []


def test_by_keyboard_alone(page, doubts):
    slide(page, 0)
    page.get_by_role("button", name="Zoom in").focus()
    page.keyboard.press("Shift+Tab")
    expect(box(page, "Open")).to_be_focused()
    is_active(word(page, "Open"))
    expect(page.locator(".rl-tag")).to_have_text("Open95% sure, turned 90° anticlockwise")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(box(page, "\"A&B'")).to_be_focused()
    page.keyboard.press("End")
    expect(box(page, "smudge")).to_be_focused()
    page.get_by_role("slider").focus()
    page.keyboard.press("Tab")
    expect(word(page, "smudge")).to_be_focused()
    page.keyboard.press("Home")
    expect(word(page, "Open")).to_be_focused()
    is_active(box(page, "Open"))


def test_a_finger_may_miss_a_little(page, doubts):
    stage = page.locator(".rl-stage").bounding_box()
    scale = stage["width"] / 200
    page.mouse.click(stage["x"] + 180 * scale + 15, stage["y"] + 20 * scale)
    expect(box(page, "Open")).to_be_focused()


def test_the_slider_hides_words_that_are_less_sure(page, doubts):
    lines, heading = result(page).locator("li:visible"), result(page).get_by_role("heading")
    expect(heading).to_have_text("4 words in 3 lines, 1 hidden")
    expect(box(page, "smudge")).to_be_hidden()
    asked = len(page.asked)
    slide(page, 0)
    expect(lines).to_have_count(4)
    expect(box(page, "smudge")).to_be_visible()
    slide(page, 0.78)
    expect(lines).to_have_text([f"Open {HOSTILE}"])
    expect(heading).to_have_text("2 words in 1 line, 3 hidden")
    expect(page.get_by_role("option")).to_have_count(2)
    slide(page, 1)
    expect(result(page)).to_contain_text("No word is that sure")
    expect(page.get_by_role("button", name="Copy all")).to_be_disabled()
    assert len(page.asked) == asked
    assert page.complaints == []


def test_two_thousand_words(page):
    show(
        page,
        [(f"word{n}", n / 2000) for n in range(2000)],
        [(n // 200, list(range(n, n + 10))) for n in range(0, 2000, 10)],
    )
    heading = result(page).get_by_role("heading")
    expect(heading).to_have_text("1200 words in 120 lines, 800 hidden")
    slide(page, 0.5)
    expect(heading).to_have_text("1000 words in 100 lines, 1000 hidden")
    expect(page.locator(".rl-page [data-word][tabindex='0']")).to_have_count(2)  # one for each side, not two thousand
    box(page, "word1000").focus()
    page.keyboard.press("End")
    expect(word(page, "word1999")).to_be_in_viewport()
    is_active(word(page, "word1999"))
    assert page.complaints == []


def test_doubtful_words_are_dashed(page, doubts):
    slide(page, 0)
    dashes = "polygons => polygons.map(each => getComputedStyle(each).strokeDasharray !== 'none')"
    assert page.locator(".rl-box polygon:last-child").evaluate_all(dashes) == [False, False, True, False, True]


def test_the_text_can_be_copied(page, doubts):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy all").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    expected = f"Open {HOSTILE}\n\n\"A&B'\n{{{{value}}}}${{1}}"
    assert page.evaluate("navigator.clipboard.readText()") == expected
    expect(page.get_by_role("button", name="Copy all")).to_be_visible()


def test_downloads(page, doubts):
    """Made in the browser: the whole answer, and the text that is shown."""
    slide(page, 0.6)
    page.asked.clear()
    expected = f"Open {HOSTILE}\n\n{{{{value}}}}${{1}}\n"
    assert downloaded(page, "Download text") == ("my sign.txt", expected)
    name, data = downloaded(page, "Download JSON")
    assert name == "my sign.json"
    assert ReadResponse.model_validate(json.loads(data)) == doubts
    name, hocr = downloaded(page, "Download hOCR")
    assert name == "my sign.hocr.html"
    root = ElementTree.fromstring(hocr.replace("<!DOCTYPE html>", ""))
    found = {kind: [each for each in root.iter() if each.get("class") == kind] for kind in ("ocrx_word", "ocr_line")}
    assert [each.text for each in found["ocrx_word"]] == ["Open", HOSTILE, "{{value}}${1}"]
    assert found["ocrx_word"][0].get("title") == "bbox 20 5 180 35; poly 20 5 180 5 180 35 20 35; x_wconf 95"
    assert [each.get("title") for each in found["ocr_line"]] == [
        "bbox 20 5 180 75; textangle 90",
        "bbox 20 125 180 155; textangle 0",
    ]
    assert [url for url in page.asked if not url.startswith("blob:")] == []


@pytest.mark.parametrize(("ending", "turned"), [("jpg", 6), ("jpg", 3), ("webp", 8), ("tif", 1)])
def test_a_photograph_that_lies_on_its_side_lines_up(page, tmp_path, ending, turned):
    """Cameras store pictures as the sensor saw them, with a note; browsers know it for JPEG only, and no TIFF."""
    back = {1: None, 3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}[turned]
    picture, places = draw_sign(-15)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = turned
    file = tmp_path / f"photo.{ending}"
    (picture if back is None else picture.transpose(back)).save(file, exif=exif, quality=92)
    upload(page, file)
    expect(page.locator(".rl-stage img")).to_have_js_property("naturalWidth", SIZE[0], timeout=PATIENCE)
    for text, corners in places.items():
        assert_over(page, text, corners)


def test_a_blank_picture(page, tmp_path, photo):
    photo(200, 160).point(lambda _: 255).save(tmp_path / "blank.png")
    upload(page, tmp_path / "blank.png")
    expect(result(page)).to_contain_text("No words found", timeout=PATIENCE)
    expect(result(page)).to_contain_text("Latin letters, and not too small")
    expect(page.locator("#word-picture img")).to_be_visible()


def test_a_broken_file_gives_a_sentence(page, tmp_path):
    draw_sign(0)[0].save(tmp_path / "whole.jpg")
    broken = tmp_path / "broken.jpg"
    broken.write_bytes((tmp_path / "whole.jpg").read_bytes()[:4000])
    upload(page, broken)
    expect(result(page)).to_contain_text("is a damaged JPEG file", timeout=PATIENCE)
    expect(page.get_by_text("uploads")).to_have_count(0)


def test_another_picture_by_button_and_by_dropping_it(page, tilted, tmp_path):
    page.get_by_role("button", name="Another picture").click()
    expect(result(page)).to_contain_text("Drop a picture with words in it")
    expect(page.locator("#word-picture")).to_be_visible()
    upload(page, tmp_path / "tilted.png")
    expect(box(page, "Books")).to_be_visible(timeout=PATIENCE)
    page.locator(".rl-page").evaluate("""async (target) => {
      const canvas = new OffscreenCanvas(200, 100), pen = canvas.getContext("2d");
      pen.fillStyle = "white";
      pen.fillRect(0, 0, 200, 100);
      const carried = new DataTransfer();
      carried.items.add(new File([await canvas.convertToBlob()], "white.png", { type: "image/png" }));
      target.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: carried }));
    }""")
    expect(result(page)).to_contain_text("No words found", timeout=PATIENCE)
    assert page.complaints == []


def test_try_an_example(page):
    page.locator("#words button, #words td").nth(1).click()
    expect(word(page, "MARKET")).to_be_visible(timeout=PATIENCE)
    assert page.locator(".rl-stage img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 640


def test_a_phone_shows_it_whole(page, tilted):
    page.set_viewport_size({"width": 390, "height": 844})
    picture, text = page.locator(".rl-stage").bounding_box(), page.locator(".rl-text").bounding_box()
    assert picture["width"] > 340
    assert text["y"] > picture["y"] + picture["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert_over(page, "Books", tilted["Books"])
    page.evaluate("scrollTo(0, 300)")
    assert page.locator(".rl-frame").bounding_box()["y"] == pytest.approx(0, abs=1)  # stays in sight above the text
