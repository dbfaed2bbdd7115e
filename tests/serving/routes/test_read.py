"""Whole pictures through the running service: text at any angle, odd pictures, broken ones, a very large one."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image, ImageDraw, ImageFont

from serving.client import ApiError

FONT = 40


def page(*words, size=(400, 320), mode="RGB"):
    """Words (text, x, y of their middle) in black on white; and the four corners of each, from its top left."""
    picture = Image.new(mode, size, "white")
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(FONT)
    corners = []
    for text, x, y in words:
        pen.text((x, y), text, fill="black", font=font, anchor="mm")
        left, top, right, bottom = pen.textbbox((x, y), text, font=font, anchor="mm")
        corners.append(np.array([[left, top], [right, top], [right, bottom], [left, bottom]], float))
    return picture, corners


def turned(picture, corners, degrees):
    """The picture turned clockwise, larger by as much as needed, and where the corners are then."""
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    other = picture.rotate(-degrees, Image.Resampling.BICUBIC, expand=True, fillcolor="white")
    middle, new = np.array(picture.size) / 2, np.array(other.size) / 2
    return other, [(each - middle) @ turn + new for each in corners]


@pytest.fixture(scope="module")
def read(service, encoded):
    """`read(picture)`: the answer for a picture."""
    return lambda picture: service.client.read(encoded(picture, "PNG"))


def is_near(found, expected, height=FONT):
    """Whether a polygon lies where it should, begins where it should, and goes round clockwise."""
    off = np.hypot(*(np.array(found) - expected).T)
    return bool((off < 0.75 * height).all())


@pytest.mark.parametrize("degrees", [0, 30, -30, 90, 180, 270])
def test_a_word_at_any_angle(read, degrees):
    """The polygon begins at the text's own top left, wherever that is."""
    picture, [corners] = turned(*page(("EXIT", 200, 160)), degrees)
    answer = read(picture)
    assert (answer.image.width, answer.image.height) == picture.size
    assert answer.text == "EXIT"
    [word], [line] = answer.words, answer.lines
    assert word.text == line.text == "EXIT"
    assert line.words == [0]
    assert is_near(word.polygon, corners), (word.polygon, corners)
    assert is_near(line.polygon, corners)
    assert abs((word.angle - degrees + 180) % 360 - 180) < 20
    assert word.confidence > 0.5
    assert word.detection_confidence > 0.5


def test_lines_in_reading_order(read):
    picture, corners = page(("LEAF", 90, 80), ("EXIT", 240, 80), ("OPEN", 90, 150), ("ROOM", 240, 150))
    answer = read(picture)
    assert answer.text.split() == ["LEAF", "EXIT", "OPEN", "ROOM"]
    assert [line.text for line in answer.lines] == ["LEAF EXIT", "OPEN ROOM"]
    for line in answer.lines:
        assert line.text == " ".join(answer.words[number].text for number in line.words)
    for line, (first, last) in zip(answer.lines, (corners[:2], corners[2:]), strict=True):
        assert is_near(line.polygon, [first[0], last[1], last[2], first[3]])
    assert sorted(number for line in answer.lines for number in line.words) == [0, 1, 2, 3]


def test_the_text_is_its_lines_with_an_empty_one_between_blocks(read):
    answer = read(page(("LEAF", 100, 50), ("EXIT", 300, 560), size=(400, 620))[0])
    text = answer.lines[0].text
    for line, before in zip(answer.lines[1:], answer.lines, strict=False):
        text += ("\n" if line.block == before.block else "\n\n") + line.text
    assert answer.text == text
    assert {"LEAF", "EXIT"} <= set(text.split())


def test_colours_and_light_text_on_dark(read):
    picture = page(("EXIT", 200, 160))[0]
    white, red = np.asarray(picture), np.array([150, 20, 30])
    ink = 1 - white[..., :1] / 255
    for ground, text in ((red, 255), (np.array([20, 30, 60]), 230), (np.array([240, 230, 200]), 40)):
        mixed = Image.fromarray((ground * (1 - ink) + text * ink).astype(np.uint8))
        assert read(mixed).text == "EXIT"


@pytest.mark.parametrize(
    ("orientation", "undo"),
    [
        (3, Image.Transpose.ROTATE_180),
        (6, Image.Transpose.ROTATE_90),
        (8, Image.Transpose.ROTATE_270),
        (2, Image.Transpose.FLIP_LEFT_RIGHT),
    ],
)
def test_places_are_those_of_the_upright_picture(service, encoded, orientation, undo):
    picture, [corners] = page(("EXIT", 120, 100))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    answer = service.client.read(encoded(picture.transpose(undo), "JPEG", quality=95, exif=exif))
    assert (answer.image.width, answer.image.height) == picture.size
    assert answer.text == "EXIT"
    assert is_near(answer.words[0].polygon, corners)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "BMP", "TIFF"])
def test_every_format(service, encoded, form):
    assert service.client.read(encoded(page(("EXIT", 200, 160))[0], form)).text == "EXIT"


@pytest.mark.parametrize("colour", ["white", "black", "gray", "red"])
def test_nothing_on_a_blank_page(read, colour):
    answer = read(Image.new("RGB", (300, 200), colour))
    assert (answer.text, answer.words, answer.lines) == ("", [], [])
    assert (answer.image.width, answer.image.height) == (300, 200)


NOISE = np.random.default_rng(0).integers(0, 256, (90, 3000, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    "picture",
    [
        Image.new("RGB", (1, 1), "red"),
        Image.fromarray(NOISE[:1, :1]),
        Image.fromarray(NOISE[:1]),
        Image.fromarray(NOISE[:, :1]),
        Image.fromarray(NOISE[:, :200]),
        Image.fromarray(NOISE[:9, :1700]),
    ],
    ids=["1 pixel", "1 odd pixel", "1 high", "1 wide", "noise", "a strip"],
)
def test_odd_pictures_get_an_answer(read, picture):
    answer = read(picture)
    assert (answer.image.width, answer.image.height) == picture.size
    assert answer.text.isascii()
    assert all(0 <= word.confidence <= 1 and 0 <= word.detection_confidence <= 1 for word in answer.words)


def test_the_same_picture_gives_the_same_answer(read):
    picture = page(("EXIT", 120, 100), ("LEAF", 250, 200))[0]
    assert read(picture) == read(picture)


def test_the_answer_names_its_models(service, read):
    named = [(model.name, model.version, model.sha256) for model in read(page(("EXIT", 200, 160))[0]).models]
    known = {model.task: (model.name, model.version, model.sha256) for model in service.client.models().models}
    assert named == [known["detect"], known["recognize"]]


def test_steps_are_timed(service, encoded):
    answer = service.http.post("/v1/read", files={"image": encoded(page(("EXIT", 200, 160))[0], "PNG")})
    steps = {step.split(";")[0] for step in answer.headers["server-timing"].split(", ")}
    assert {"decode", "detect", "infer", "layout", "total"} <= steps


def test_a_file_by_its_path(service, tmp_path):
    page(("EXIT", 200, 160))[0].save(tmp_path / "sign.png")
    assert service.client.read(tmp_path / "sign.png").text == "EXIT"


def refusal(service, **files):
    answer = service.http.post("/v1/read", files=files)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    return answer.status_code, problem["type"].rsplit(":", 1)[1], problem["detail"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", (422, "image-empty", "image has no bytes; JPEG, PNG, WebP, BMP and TIFF are accepted")),
        (b"Dear all,\n", (415, "image-format-unknown", "not an image that can be read")),
        (b"GIF89a" + bytes(40), (415, "image-format-unknown", "JPEG, PNG, WebP, BMP and TIFF")),
        (bytes(20_000_001), (413, "image-too-large", "20,000,001 bytes")),
    ],
    ids=["empty", "letter", "gif", "too many bytes"],
)
def test_what_is_no_picture(service, data, expected):
    status, kind, detail = refusal(service, image=("sign.jpg", data))
    assert (status, kind) == expected[:2]
    assert expected[2] in detail


def test_broken_and_too_large(service, encoded, bomb):
    data = encoded(page(("EXIT", 200, 160))[0], "JPEG")
    assert refusal(service, image=("half.jpg", data[: len(data) // 2]))[:2] == (422, "image-broken")
    status, kind, detail = refusal(service, image=("bomb.png", bomb))
    assert (status, kind) == (413, "image-too-large")
    assert "50,000,000" in detail
    with pytest.raises(ApiError, match="has no bytes"):
        service.client.read(b"")


def test_missing_field(service, encoded):
    status, kind, detail = refusal(service, images=encoded(page()[0], "PNG"))
    assert (status, kind) == (422, "request-invalid")
    assert "image: Field required" in detail


def memory(process, what):
    """In bytes: VmRSS now, VmHWM at most so far."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return 1024 * int(re.search(rf"{what}:\s+(\d+) kB", status)[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells how much memory a process had")
def test_small_text_in_the_corner_of_a_very_large_picture(start_service, encoded):
    picture, corners = page(("EXIT", 7800, 4900), ("LEAF", 120, 100), size=(8000, 5000), mode="L")
    data = encoded(picture, "PNG", compress_level=1)
    service = start_service()
    before = memory(service.process, "VmRSS")
    answer = service.client.read(data)
    assert (answer.image.width, answer.image.height) == (8000, 5000)
    found = {word.text: word.polygon for word in answer.words}
    assert set(found) == {"EXIT", "LEAF"}
    assert is_near(found["EXIT"], corners[0])
    assert is_near(found["LEAF"], corners[1])
    assert memory(service.process, "VmHWM") - before < 1.5e9
