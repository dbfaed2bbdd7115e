from PIL import Image

from ui.gallery import PHOTOGRAPHS, credits_line
from ui.samples import LEAVES, draw_samples


def test_the_same_pictures_every_time(tmp_path):
    first, second = draw_samples(tmp_path / "a"), draw_samples(tmp_path / "b")
    assert set(first) == {*LEAVES, "sunflower"}
    for name, file in first.items():
        assert file.read_bytes() == second[name].read_bytes()
        with Image.open(file) as picture:
            assert picture.size == (480, 480)


def test_every_photograph_is_there_and_credited():
    line = credits_line()
    for photograph in PHOTOGRAPHS:
        with Image.open(photograph.file) as picture:
            assert max(picture.size) <= 480
        assert photograph.author in line
        assert photograph.licence in line
    assert {each.file for each in PHOTOGRAPHS} == set(PHOTOGRAPHS[0].file.parent.glob("*.jpg"))
