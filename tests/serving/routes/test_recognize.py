"""Crops of words through the running service: drawn ones, odd ones, broken ones."""

import time

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont


def word(text, size=40, turn=0, ink="black", ground="white"):
    """A word, in black on white if nothing else is said."""
    font = ImageFont.load_default(size)
    left, top, right, bottom = font.getbbox(text)
    picture = Image.new("RGB", (int(right - left) + 16, int(bottom - top) + 16), ground)
    ImageDraw.Draw(picture).text((8 - left, 8 - top), text, fill=ink, font=font)
    return picture.rotate(turn, Image.Resampling.BICUBIC, expand=True, fillcolor=ground)


@pytest.fixture(scope="module")
def read(service, encoded):
    """`read(picture, …)`: the results for pictures."""
    return lambda *pictures, **options: service.client.recognize([encoded(one, "PNG") for one in pictures], **options)


def test_signs_in_colour_with_blur_and_grain(read):
    signs = {
        "Botanic": word("Botanic", 96, 0, (250, 247, 235), (32, 84, 58)),
        "Espresso!": word("Espresso!", 96, 7, (60, 34, 20), (226, 205, 170)),
        "N17-4GU": word("N17-4GU", 96, 0, (20, 20, 24), (246, 200, 40)),
        "LIBRARY": word("LIBRARY", 96, 90, (245, 245, 245), (140, 40, 36)),
    }
    grain = np.random.default_rng(1)
    photographs = []
    for sign in signs.values():
        pixels = np.asarray(sign.filter(ImageFilter.GaussianBlur(1.2)), float)
        pixels = pixels * np.linspace(1.08, 0.86, pixels.shape[1])[:, None] + grain.normal(0, 4, pixels.shape)
        photographs.append(Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)))
    found = read(*photographs).results
    assert [one.text for one in found] == list(signs)
    assert [one.turned for one in found] == [0, 0, 0, 90]
    assert all(one.confidence > 0.5 for one in found)


def test_many_crops_keep_their_order(read):
    texts = [f"{name}{number}" for number in range(1, 17) for name in ("oak", "Sunflower", "i", "Rhododendron")]
    assert [one.text for one in read(*map(word, texts)).results] == texts


def test_what_is_clear_is_not_mended(read):
    texts = ["Gardn", "recieve", "Sunflovver", "Espreso", "qwrtz", "Sunflower8", "room12b", "A1B2C3", "v2.0"]
    assert [one.text for one in read(*map(word, texts)).results] == texts


def test_neighbours_in_a_batch_do_not_matter(read):
    crops = [word(text) for text in ("leaf", "willow", "fern", "moss", "Ash")]
    together = read(*crops).results
    for crop, expected in zip(crops, together, strict=True):
        [alone] = read(crop).results
        assert alone.text == expected.text
        assert alone.confidence == pytest.approx(expected.confidence, abs=1e-4)


def test_details_say_how_sure_each_character_is(read):
    [plain], [full] = read(word("Oak7")).results, read(word("Oak7"), details=True).results
    assert plain.characters is None
    assert "".join(one.text for one in full.characters) == full.text == "Oak7"
    for character in full.characters:
        assert character.text not in {other.text for other in character.alternatives}
        assert character.confidence + sum(other.confidence for other in character.alternatives) == pytest.approx(1)


def test_without_details_the_answer_is_short(service, encoded):
    answer = service.http.post("/v1/recognize", files=[("images", ("a.png", encoded(word("Elm"), "PNG")))])
    assert answer.json()["results"] == [
        {"text": "Elm", "confidence": answer.json()["results"][0]["confidence"], "turned": 0}
    ]


@pytest.mark.parametrize("turn", [90, 270])
def test_a_word_on_its_side_is_turned(read, turn):
    [found] = read(word("Botanical", turn=turn)).results
    assert (found.text, found.turned) == ("Botanical", turn)


@pytest.mark.parametrize(
    "picture",
    [
        Image.new("RGB", (60, 1), "white"),
        Image.new("RGB", (1, 60), "black"),
        Image.new("RGB", (1, 1), "red"),
        Image.new("RGB", (4000, 30), "white"),
        Image.new("RGB", (30, 4000), "gray"),
        Image.new("RGB", (300, 100), "white"),
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 200, 3), dtype=np.uint8)),
        word("upside-down").rotate(180),
        Image.new("RGB", (6000, 5000), "white"),
    ],
    ids=["1 high", "1 wide", "1 pixel", "4000 wide", "4000 high", "blank", "noise", "upside down", "30 megapixels"],
)
def test_odd_crops_get_an_answer_soon(read, picture):
    started = time.monotonic()
    [found] = read(picture, details=True).results
    assert time.monotonic() - started < 20
    assert 0 <= found.confidence <= 1
    assert found.text.isascii()


@pytest.mark.parametrize("colour", ["white", "black", "gray"])
def test_nothing_is_read_from_a_blank_page(read, colour):
    [found] = read(Image.new("RGB", (200, 60), colour), details=True).results
    assert (found.text, found.confidence, found.characters) == ("", 0, [])


def test_a_long_word_is_squeezed(read):
    [found] = read(word("incomprehensibilities")).results
    assert found.text == "incomprehensibilities"


def test_refusals(service, encoded):
    def refusal(files):
        answer = service.http.post("/v1/recognize", files=files)
        assert answer.headers["content-type"] == "application/problem+json"
        return answer.status_code, answer.json()["detail"]

    good = encoded(word("Elm"), "PNG")
    assert refusal([("images", ("a.png", good)), ("images", ("b.png", b""))]) == (
        422,
        "image 2 (b.png) has no bytes; JPEG, PNG, WebP, BMP and TIFF are accepted",
    )
    assert refusal([("images", ("a.txt", b"hello"))])[0] == 415
    assert refusal([("images", ("a.png", good[: len(good) // 2]))])[0] == 422
    assert refusal([("images", ("a.png", good))] * 65) == (
        413,
        "65 images were sent; at most 64 are accepted in one call",
    )
    assert refusal([("pictures", ("a.png", good))])[0] == 422


def test_a_bomb_is_refused(service, bomb):
    answer = service.http.post("/v1/recognize", files=[("images", ("bomb.png", bomb))])
    assert answer.status_code == 413


def test_the_answer_names_its_model(service, read):
    model = read(word("a")).model
    [info] = [one for one in service.client.models().models if one.task == "recognize"]
    assert (model.name, model.sha256) == (info.name, info.sha256) == ("recognizer", info.sha256)
    assert len(info.symbols) == 94
    assert info.dim is None
