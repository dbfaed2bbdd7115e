import io
import random
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from PIL import Image, ImageOps

from serving.errors import ImageBroken, ImageEmpty, ImageFormatUnknown, ImageTooLarge, RequestError
from serving.images import ImageLimits, decode, fit

LIMITS = ImageLimits(max_bytes=20_000_000, max_pixels=50_000_000)
ORIENTATION = 0x0112


def close(picture, expected, tolerance):
    """Mean absolute difference of two pictures of equal size."""
    assert picture.size == expected.size
    difference = np.abs(np.asarray(picture, dtype=float) - np.asarray(expected.convert("RGB"), dtype=float))
    return difference.mean() <= tolerance


@pytest.mark.parametrize(
    ("form", "options", "tolerance"),
    [
        ("JPEG", {"quality": 95}, 3),
        ("PNG", {}, 0),
        ("WEBP", {"lossless": True}, 0),
        ("BMP", {}, 0),
        ("TIFF", {}, 0),
        ("TIFF", {"compression": "tiff_lzw"}, 0),
    ],
)
def test_accepted_formats(photo, encoded, form, options, tolerance):
    picture = photo()
    result = decode(encoded(picture, form, **options), LIMITS)
    assert result.mode == "RGB"
    assert close(result, picture, tolerance)


@pytest.mark.parametrize("orientation", [*range(1, 9), 0, 99])
@pytest.mark.parametrize("min_side", [None, 40])
def test_exif_orientation_is_applied(photo, encoded, orientation, min_side):
    picture = photo(400, 240)
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    data = encoded(picture, "JPEG", quality=95, exif=exif)
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    result = decode(data, LIMITS, min_side=min_side)
    if min_side is not None:
        assert result.width < upright.width  # decoded at a fraction of its size
        assert min(result.size) >= min_side
        upright = upright.resize(result.size, Image.Resampling.BOX)
    assert close(result, upright, 3)


def test_broken_exif_does_not_refuse_a_good_picture(photo, encoded):
    picture = photo()
    data = encoded(picture, "JPEG", quality=95, exif=b"Exif\0\0II*\0\xff\xff\xff\xff garbage")
    assert close(decode(data, LIMITS), picture, 3)


def test_sixteen_bit_gray_keeps_its_upper_byte(encoded):
    ramp = (np.arange(256, dtype=np.uint16) * 257).reshape(16, 16)
    result = decode(encoded(Image.fromarray(ramp), "PNG"), LIMITS)
    assert np.array_equal(np.asarray(result)[..., 0], (ramp >> 8).astype(np.uint8))


def test_float_tiff_is_spread_over_its_range(encoded):
    values = np.linspace(-3.0, 5.0, 64, dtype=np.float32).reshape(8, 8)
    result = np.asarray(decode(encoded(Image.fromarray(values), "TIFF"), LIMITS))
    assert result.min() == 0
    assert result.max() == 255


def test_cmyk_jpeg(photo, encoded):
    picture = photo().convert("CMYK")
    assert close(decode(encoded(picture, "JPEG", quality=95), LIMITS), picture, 4)


def test_palette(photo, encoded):
    picture = photo().convert("P", palette=Image.Palette.ADAPTIVE)
    assert close(decode(encoded(picture, "PNG"), LIMITS), picture, 0)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparent_pixels_lie_on_white(encoded, mode):
    nothing = Image.new(mode, (20, 20), 0)
    assert np.asarray(decode(encoded(nothing, "PNG"), LIMITS)).min() == 255


def test_transparent_palette_entry_lies_on_white(encoded):
    picture = Image.new("P", (20, 20), 0)
    picture.putpalette([0, 0, 0, 255, 0, 0])
    assert np.asarray(decode(encoded(picture, "PNG", transparency=0), LIMITS)).min() == 255


@pytest.mark.parametrize("form", ["WEBP", "TIFF", "PNG"])
def test_of_several_frames_the_first_counts(photo, encoded, form):
    first, second = photo(seed=1), photo(seed=2)
    options = {"lossless": True} if form == "WEBP" else {}
    data = encoded(first, form, save_all=True, append_images=[second], **options)
    assert close(decode(data, LIMITS), first, 0)


def test_empty():
    with pytest.raises(ImageEmpty, match="no bytes"):
        decode(b"", LIMITS, name="image 3")


@pytest.mark.parametrize("data", [b"Dear all,\nplease find the leaf attached.\n", b"\xff\xd8", b"GIF89a" + bytes(60)])
def test_what_is_no_image_is_refused(data):
    with pytest.raises(ImageFormatUnknown, match="JPEG, PNG, WebP, BMP and TIFF"):
        decode(data, LIMITS)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_truncated_is_damaged(photo, encoded, form):
    data = encoded(photo(), form)
    with pytest.raises((ImageBroken, ImageFormatUnknown)):
        decode(data[: len(data) * 2 // 3], LIMITS)


def test_truncated_jpeg_says_so(photo, encoded):
    data = encoded(photo(), "JPEG")
    with pytest.raises(ImageBroken, match="image 2 is a damaged JPEG file"):
        decode(data[: len(data) // 2], LIMITS, name="image 2")


def test_too_many_bytes(photo, encoded):
    with pytest.raises(ImageTooLarge, match="at most 100"):
        decode(encoded(photo()), ImageLimits(max_bytes=100, max_pixels=10**9))


def test_a_bomb_is_refused_before_it_is_decoded(bomb):
    tracemalloc.start()
    with pytest.raises(ImageTooLarge, match="pixels"):
        decode(bomb, LIMITS)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


def test_pixels_up_to_the_limit_are_accepted(photo, encoded):
    data = encoded(photo(100, 50))
    assert decode(data, ImageLimits(10**6, 5000)).size == (100, 50)
    with pytest.raises(ImageTooLarge, match="100×50"):
        decode(data, ImageLimits(10**6, 4999))


@pytest.mark.parametrize("size", [(300, 220), (220, 300), (50, 50), (1000, 31), (1, 1)])
def test_fit_takes_the_middle(photo, size):
    picture = photo(*size)
    result = fit(picture, 64, 64)
    assert result.shape == (64, 64, 3)
    expected = np.asarray(ImageOps.fit(picture, (64, 64), Image.Resampling.BOX), dtype=float)
    assert np.abs(result - expected).mean() < 6


@pytest.mark.campaign
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "BMP", "TIFF"])
def test_mutated_files_are_decoded_or_refused(photo, encoded, rounds, form):
    """Whatever happens to a file on its way, the answer is a picture or one of our own errors."""
    original = encoded(photo(64, 48), form)
    chance = random.Random(form)
    outcomes = Counter[str]()
    for _ in range(rounds(300, 20_000)):
        data = bytearray(original)
        for _ in range(chance.randint(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        try:
            outcomes[decode(bytes(data), ImageLimits(10**6, 10**6)).mode] += 1
        except RequestError as error:
            outcomes[error.kind] += 1
    print(form, dict(outcomes))  # noqa: T201 - shown by make soak
    assert set(outcomes) <= {"RGB", "image-empty", "image-format-unknown", "image-broken", "image-too-large"}
    assert len(outcomes) >= 2
