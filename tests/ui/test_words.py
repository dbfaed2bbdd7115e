from PIL import Image

from ui.words import SAVED, SCENES, draw_words


def test_the_same_scenes_every_time(tmp_path):
    first, second = draw_words(tmp_path / "a"), draw_words(tmp_path / "b")
    assert [file.stem for file in first] == list(SCENES)
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
        with Image.open(one) as picture:
            assert picture.size == SAVED
