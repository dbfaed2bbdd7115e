"""From a picture to its text: what is cut out, which way up it is read, and what the page says."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from PIL import Image

from serving.errors import ImageBroken, ImageEmpty
from serving.images import ImageLimits
from serving.pipelines.read import CLEARLY, DOUBTFUL, PageText, Reader, TextLine, Word, corners, cut_out, turned_corners
from serving.pipelines.recognize import Reading
from serving.pipelines.spelling import Spelling
from serving.pipelines.upload import Upload
from serving.pipelines.word_boxes import NOTHING, Words
from serving.timing import Timings

LIMITS = ImageLimits(max_bytes=10_000_000, max_pixels=10_000_000)


def box_at(x, y, width, height, degrees=0.0):
    angle = np.deg2rad(degrees)
    return np.array([x, y, width, height, np.cos(angle), np.sin(angle)], np.float32)


def pattern(width, height):
    """Something smooth that is nowhere like itself."""
    coarse = np.random.default_rng(3).integers(0, 256, (max(3, height // 8), max(3, width // 8)), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).convert("RGB")


def scene(word, degrees, side=400):
    """A word in the middle of a picture, turned clockwise by another library."""
    picture = Image.new("RGB", (side, side), "gray")
    picture.paste(word, ((side - word.width) // 2, (side - word.height) // 2))
    return np.asarray(picture.rotate(-degrees, Image.Resampling.BICUBIC))


def middle(crop, width, height):
    left, top = (crop.shape[1] - width) // 2, (crop.shape[0] - height) // 2
    return crop[top : top + height, left : left + width]


ANGLES = [0, 1, 30, 45, 89, 90, 137, 180, -90, -45, -13]


@pytest.mark.parametrize("degrees", ANGLES)
def test_a_word_is_cut_out_upright(degrees):
    word = pattern(160, 50)
    crop = cut_out(scene(word, degrees), box_at(200, 200, 160, 50, degrees))
    assert crop.shape == (66, 176, 3)  # with a margin
    assert crop.dtype == np.uint8
    off = np.abs(middle(crop, 160, 50)[3:-3, 3:-3].astype(float) - np.asarray(word)[3:-3, 3:-3])
    assert off.mean() < 9
    for wrong in (np.rot90(crop, 2), crop[::-1], crop[:, ::-1]):
        assert np.abs(middle(wrong, 160, 50).astype(float) - np.asarray(word)).mean() > 25


@pytest.mark.parametrize("degrees", [0, 90, 180, -90])
def test_no_pixel_is_shifted(degrees):
    word = pattern(160, 50)
    crop = cut_out(scene(word, degrees), box_at(200, 200, 160, 50, degrees))
    np.testing.assert_allclose(middle(crop, 160, 50), np.asarray(word), atol=1)


@pytest.mark.parametrize("degrees", [0, 30, 180])
def test_a_small_word_is_enlarged_as_it_is_cut_out(degrees):
    word = pattern(60, 20)
    crop = cut_out(scene(word, degrees, side=120), box_at(60, 60, 60, 20, degrees))
    assert crop.shape == (48, 121, 3)
    enlarged = np.asarray(word.resize((109, 36), Image.Resampling.BILINEAR), float)
    off = np.abs(middle(crop, 109, 36)[6:-6, 6:-6].astype(float) - enlarged[6:-6, 6:-6])
    assert off.mean() < 14


def test_a_tall_word_is_cut_out_as_it_stands():
    assert cut_out(np.zeros((300, 300, 3), np.uint8), box_at(150, 150, 80, 200)).shape == (226, 106, 3)
    assert cut_out(np.zeros((300, 300, 3), np.uint8), box_at(150, 150, 10, 40)).shape[1] == 48


def test_what_lies_outside_is_like_the_edge():
    picture = np.full((100, 200, 3), 50, np.uint8)
    picture[:, 190:] = 180
    crop = cut_out(picture, box_at(200, 50, 40, 64))
    assert (crop[:, -20:] == 180).all()
    assert (crop[:, 0] == 50).all()
    assert (cut_out(picture, box_at(-500, -500, 40, 64)) == 50).all()


@pytest.mark.parametrize("along", [0, 1])
def test_far_along_a_panorama(along):
    """More pixels a side than fit into 15 bits."""
    word = np.asarray(pattern(160, 60))
    strip = np.zeros((100, 40_000, 3) if along else (40_000, 200, 3), np.uint8)
    x, y = (39_500, 50) if along else (100, 39_500)
    strip[y - 30 : y + 30, x - 80 : x + 80] = word
    near = np.zeros((100, 200, 3), np.uint8)
    near[20:80, 20:180] = word
    np.testing.assert_array_equal(
        middle(cut_out(strip, box_at(x, y, 160, 60)), 158, 58), middle(cut_out(near, box_at(100, 50, 160, 60)), 158, 58)
    )


@pytest.mark.parametrize("box", [box_at(50, 50, 0.01, 0.01), box_at(50, 50, 90, 0.5), box_at(50, 50, 1, 90, 45)])
def test_any_box_can_be_cut_out(box):
    crop = cut_out(np.zeros((100, 100, 3), np.uint8), box)
    assert min(crop.shape[:2]) >= 1


def test_a_line_as_thin_as_a_hair_does_not_fill_the_memory():
    crop = cut_out(np.zeros((100, 2000, 3), np.uint8), box_at(1000, 50, 2000, 3))
    assert crop.shape[1] <= 8000


@pytest.mark.parametrize("degrees", ANGLES)
def test_corners(degrees):
    """Of a box turned clockwise about its middle."""
    turned = corners(box_at(100, 50, 80, 20, degrees))
    angle = np.deg2rad(degrees)
    points = np.array([[-40, -10], [40, -10], [40, 10], [-40, 10]])
    x = points[:, 0] * np.cos(angle) - points[:, 1] * np.sin(angle) + 100
    y = points[:, 0] * np.sin(angle) + points[:, 1] * np.cos(angle) + 50
    np.testing.assert_allclose(turned, np.stack([x, y], axis=1), atol=1e-4)


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
@pytest.mark.parametrize("degrees", [0, 30, -100])
def test_corners_begin_where_the_text_does(turned, degrees):
    """A mark at the top left of the crop, once it is turned to be read, is at the first corner of the polygon."""
    box = box_at(200, 200, 120, 100, degrees)
    first, second, _, last = turned_corners(box, turned)
    inwards = first + 0.15 * (second - first) + 0.15 * (last - first)
    picture = np.zeros((400, 400, 3), np.uint8)
    cv2.circle(picture, np.round(inwards).astype(int).tolist(), 8, (255, 255, 255), -1)
    crop = np.rot90(cut_out(picture, box), -turned // 90)
    height, width = crop.shape[:2]
    assert crop[: height // 3, : width // 3].max() == 255
    assert crop[height // 3 :].max() == crop[:, width // 3 :].max() == 0


@pytest.mark.parametrize("degrees", [0, 30, 90, 179, -179, -90, -1])
def test_the_angle_of_a_word(degrees):
    word = Word("a", 1, 1, turned_corners(box_at(5, 9, 80, 20, degrees), 0))
    assert word.angle == pytest.approx(degrees, abs=1e-3)
    upside_down = Word("a", 1, 1, turned_corners(box_at(5, 9, 80, 20, degrees), 180))
    assert (upside_down.angle - degrees) % 360 == pytest.approx(180, abs=1e-3)


class Finds:
    """A detector that says what it is told."""

    def __init__(self, *boxes):
        self.boxes = boxes

    def __call__(self, picture, timings):
        assert picture.ndim == 3
        self.timings = timings
        if not self.boxes:
            return NOTHING
        return Words(np.array(self.boxes, np.float32), np.linspace(0.9, 0.7, len(self.boxes), dtype=np.float32))


class ReadsColours:
    """A recogniser whose words are colours: dark on the left, and white on the right if they are upright."""

    def __init__(self, texts, sure=0.95, unsure=0.1):
        self.texts, self.sure, self.unsure = texts, sure, unsure
        self.calls = []

    async def read(self, crops, timings):
        self.calls.append(len(crops))
        return [self.one(crop) for crop in crops]

    def one(self, crop):
        row = crop[crop.shape[0] // 2, :, 0]
        left, right = int(row[len(row) // 4]), int(row[len(row) * 3 // 4])
        text, confidence = (self.texts[left], self.sure) if right > left else (self.texts[right][::-1], self.unsure)
        return Reading(Spelling(text, confidence if text else 0.0))


def page_with(boxes):
    """A picture with a word of colours 10, 20, … at each upright box, read from the left."""
    picture = np.full((300, 400, 3), 128, np.uint8)
    for number, (x, y, width, height, *_) in enumerate(boxes, start=1):
        left, top, right, bottom = (int(v) for v in (x - width / 2, y - height / 2, x + width / 2, y + height / 2))
        picture[top:bottom, left:right] = 255
        picture[top:bottom, left : int(x)] = 10 * number
    return picture


BOXES = [box_at(100, 60, 80, 24), box_at(200, 60, 80, 24), box_at(100, 100, 80, 24)]
TEXTS = {10: "one", 20: "two", 30: "three"}


def read(detector, recognizer, picture):
    timings = Timings()
    with ThreadPoolExecutor(1) as workers:
        reader = Reader(detector, recognizer, LIMITS, workers)
        if isinstance(picture, bytes):
            return asyncio.run(reader(Upload("a.png", picture), timings)), timings
        return asyncio.run(reader.read(picture, timings)), timings


def test_words_and_lines():
    detector, recognizer = Finds(*BOXES), ReadsColours(TEXTS)
    page, timings = read(detector, recognizer, page_with(BOXES))
    assert detector.timings is timings  # it may see that nobody waits any more
    assert (page.width, page.height) == (400, 300)
    assert [word.text for word in page.words] == ["one", "two", "three"]
    assert [word.confidence for word in page.words] == [0.95] * 3
    np.testing.assert_allclose([word.detection_confidence for word in page.words], [0.9, 0.8, 0.7])
    np.testing.assert_allclose(page.words[1].polygon, [[160, 48], [240, 48], [240, 72], [160, 72]], atol=1e-4)
    assert [(line.text, line.words) for line in page.lines] == [("one two", (0, 1)), ("three", (2,))]
    np.testing.assert_allclose(page.lines[0].polygon, [[60, 48], [240, 48], [240, 72], [60, 72]], atol=0.1)
    assert page.text == "one two\nthree"
    assert {step.split(";")[0] for step in timings.header(1).split(", ")} >= {"detect", "layout"}
    assert recognizer.calls[0] == 3
    assert sum(recognizer.calls) == 3  # what is sure is read once


def test_a_picture_without_words():
    page, _ = read(Finds(), ReadsColours(TEXTS), np.zeros((30, 50, 3), np.uint8))
    assert page == PageText(50, 30, [], [])
    assert page.text == ""


def test_what_cannot_be_read_is_no_word():
    page, _ = read(Finds(*BOXES), ReadsColours(TEXTS | {20: ""}), page_with(BOXES))
    assert [word.text for word in page.words] == ["one", "three"]
    assert page.text == "one\nthree"
    page, _ = read(Finds(*BOXES), ReadsColours(dict.fromkeys(TEXTS, "")), page_with(BOXES))
    assert (page.words, page.lines, page.text) == ([], [], "")


def test_a_word_on_its_head_is_turned():
    """The detector took one word to run the other way."""
    wrong = [BOXES[0], box_at(200, 60, 80, 24, 180), BOXES[2]]
    recognizer = ReadsColours(TEXTS)
    page, _ = read(Finds(*wrong), recognizer, page_with(BOXES))
    assert recognizer.calls == [3, 1]  # only what is doubtful is read again
    assert page.text == "one two\nthree"
    assert page.words[1].confidence == 0.95
    np.testing.assert_allclose(page.words[1].polygon, [[160, 48], [240, 48], [240, 72], [160, 72]], atol=1e-3)
    assert page.words[1].angle == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("unsure", "sure", "turned"),
    [
        (DOUBTFUL, 1.0, False),
        (DOUBTFUL - 0.01, 1.0, True),
        (0.5, 0.5 + CLEARLY + 0.01, True),
        (0.5, 0.5 + CLEARLY - 0.01, False),
    ],
)
def test_only_what_is_clearly_surer_is_turned(unsure, sure, turned):
    upside_down = box_at(100, 60, 80, 24, 180)
    page, _ = read(Finds(upside_down), ReadsColours(TEXTS, sure, unsure), page_with(BOXES[:1]))
    [word] = page.words
    assert word.text == ("one" if turned else "eno")
    assert abs(word.angle) == pytest.approx(0 if turned else 180, abs=1e-3)


def test_an_empty_line_stands_between_blocks():
    quad = np.zeros((4, 2))
    lines = [TextLine(text, quad, (n,), block) for n, (text, block) in enumerate([("a", 0), ("b", 0), ("c", 1)])]
    words = [Word(text, 1, 1, quad) for text in "abc"]
    assert PageText(9, 9, words, lines).text == "a\nb\n\nc"


def test_an_upload_is_decoded_upright(encoded):
    upright = Image.fromarray(page_with(BOXES))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: show it a quarter clockwise
    data = encoded(upright.rotate(90, expand=True), "PNG", exif=exif)
    page, timings = read(Finds(*BOXES), ReadsColours(TEXTS), data)
    assert (page.width, page.height, page.text) == (400, 300, "one two\nthree")
    assert "decode" in timings.header(1)


def test_a_bad_upload_is_named(encoded):
    with pytest.raises(ImageEmpty, match=r"a\.png has no bytes"):
        read(Finds(), ReadsColours(TEXTS), b"")
    with pytest.raises(ImageBroken, match=r"a\.png is a damaged PNG"):
        read(Finds(), ReadsColours(TEXTS), encoded(Image.fromarray(page_with(BOXES)), "PNG")[:-200])
