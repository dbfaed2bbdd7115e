import pytest
from PIL import ExifTags, Image

from serving.client import Client
from ui.read import read, upright
from ui.read_result import INVITATION
from ui.words import draw_words


@pytest.fixture
def save(tmp_path):
    """`save("a.webp", 6)`: a picture that must be turned so to stand upright, red in the corner that is then first."""

    def make(name, orientation=1, mode="RGB"):
        exif = Image.Exif()
        exif[ExifTags.Base.Orientation] = orientation
        picture = Image.new("RGB", (40, 20), "white")
        picture.paste("red", (0, 10, 10, 20) if orientation == 6 else (0, 0, 10, 10))
        picture.convert(mode).save(tmp_path / name, exif=exif, lossless=True)
        return tmp_path / name

    return make


@pytest.mark.parametrize(("name", "orientation"), [("a.jpg", 6), ("a.png", 1), ("a.webp", 1), ("a.bmp", 1)])
def test_what_browsers_show_upright_is_left_alone(save, name, orientation):
    file = save(name, orientation)
    assert upright(file) == file


@pytest.mark.parametrize(
    ("name", "orientation", "mode"),
    [("a.webp", 6, "RGB"), ("a.png", 6, "RGB"), ("a.tif", 6, "RGB"), ("a.tif", 1, "RGB"), ("a.tif", 1, "CMYK")],
)
def test_what_they_do_not_is_made_upright(save, name, orientation, mode):
    with Image.open(upright(save(name, orientation, mode))) as picture:
        assert picture.format == "PNG"
        assert picture.size == ((20, 40) if orientation == 6 else (40, 20))
        red, green, blue = picture.convert("RGB").getpixel((3, 3))
        assert red > 200 > 60 > max(green, blue)


def test_a_picture_that_cannot_be_made_upright_is_shown_as_it_is(tmp_path):
    file = tmp_path / "a.tif"
    file.write_bytes(b"II*\0")
    assert upright(file) == file


def test_a_scene_is_read(service, tmp_path):
    made = set()
    receipt = next(file for file in draw_words(tmp_path) if file.stem == "receipt")
    page = read(service.client, made, str(receipt))
    assert ">Bread</span>" in page
    assert f'src="gradio_api/file={receipt}"' in page
    assert made == set()


def test_copies_are_noted_so_that_they_are_deleted(service, tmp_path):
    made = set()
    file = tmp_path / "scan 1.tif"
    with Image.open(draw_words(tmp_path)[1]) as picture:
        picture.save(file)
    page = read(service.client, made, str(file))
    assert made == {str(tmp_path / "scan 1-upright.png")}
    assert "scan%201-upright.png" in page
    assert 'data-name="scan 1.tif"' in page


def test_no_picture_and_no_service(tmp_path):
    with Client("http://127.0.0.1:9", timeout=2) as client:
        assert read(client, set(), None) == INVITATION
        assert "is Readleaf running" in read(client, set(), str(draw_words(tmp_path)[0]))
