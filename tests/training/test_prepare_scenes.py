import cv2
import numpy as np
import pytest

from training import prepare_scenes
from training.data.scenes import Scene
from training.errors import DataError
from training.prepare_scenes import GROUND, WINDOWS, ground_sources, photographs, scene_renderer, wordless_parts

RED = (255, 0, 0)


def scene_of(tmp_path, name, boxes, *, size=(500, 900), texts=None, set_name="train"):
    """A green photograph with red words: boxes (left, top, width, height)."""
    pixels = np.full((*size, 3), (0, 200, 0), dtype=np.uint8)
    quads = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h in boxes]
    for quad in quads:
        cv2.fillConvexPoly(pixels, np.array(quad, dtype=np.int32), RED)
    cv2.imwrite(str(tmp_path / name), cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
    texts = tuple(texts or ["word"] * len(boxes))
    return Scene(tmp_path / name, np.array(quads, dtype=float).reshape(-1, 4, 2), texts, set_name)


def test_no_word_stands_on_a_ground(tmp_path):
    """Not even one that nobody cares for."""
    scenes = [
        scene_of(tmp_path, "one.png", [(20, 20, 60, 20)]),
        scene_of(tmp_path, "two.png", [(800, 100, 60, 300), (5, 5, 20, 20)], texts=["###", "leaf"]),
        scene_of(tmp_path, "bare.png", []),
    ]
    for scene, least in zip(scenes, (1, 1, WINDOWS), strict=True):
        parts = list(wordless_parts([scene]))
        assert least <= len(parts) <= WINDOWS
        for part in parts:
            assert part.shape == (GROUND, GROUND, 3)
            assert part.flags.c_contiguous
            assert (part == (0, 200, 0)).all()


def test_photographs_without_room_give_no_ground(tmp_path):
    small = scene_of(tmp_path, "small.png", [], size=(GROUND, 900))
    full = scene_of(tmp_path, "full.png", [(0, 0, 899, 499)])
    assert list(wordless_parts([small, full])) == []


def test_grounds_are_the_same_each_time(tmp_path):
    scene = scene_of(tmp_path, "bare.png", [])
    noise = np.random.default_rng(0).integers(0, 255, (500, 900, 3), dtype=np.uint8)
    cv2.imwrite(str(scene.file), noise)
    for one, other in zip(wordless_parts([scene]), wordless_parts([scene]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def folder(tmp_path):
    """Eleven pictures of one colour each, numbered by it, below two folders."""
    for number in range(11):
        file = tmp_path / ("a" if number % 2 else "b") / f"{number:02d}.{'PNG' if number == 3 else 'png'}"
        file.parent.mkdir(exist_ok=True)
        cv2.imwrite(str(file.with_suffix(".png")), np.full((4, 6, 3), (0, 0, 10 * number + 10), dtype=np.uint8))
        file.with_suffix(".png").rename(file)
    return tmp_path


def test_pictures_of_folders(folder):
    found = [int(pixels[0, 0, 0]) // 10 - 1 for pixels in photographs([folder])]
    assert found == [1, 3, 5, 7, 9, 0, 2, 4, 6, 8, 10]  # by name; red comes first
    assert all(pixels.shape == (4, 6, 3) for pixels in photographs([folder, folder]))


def test_of_a_labelled_folder_only_what_is_for_training(folder):
    rows = ["file\tsource\tset", "a/01.png\tmade\ttrain", "b/02.png\tfound\tval", "a/05.png\tfound\ttrain"]
    (folder / "labels.tsv").write_text("\n".join(rows) + "\n")
    assert [int(pixels[0, 0, 0]) // 10 - 1 for pixels in photographs([folder])] == [1, 5]


def test_where_photographs_come_from(folder):
    assert ground_sources([folder / "b", folder / "a"]) == ["a", "b"]
    (folder / "a/labels.tsv").write_text("file\tsource\tset\n01.png\tmade\ttrain\n05.png\tfound\ttrain\n")
    (folder / "b/labels.tsv").write_text("file\tset\n02.png\ttrain\n")
    assert ground_sources([folder / "a", folder / "b"]) == ["b", "found", "made"]
    assert ground_sources([]) == []


@pytest.mark.parametrize("most", [1, 3, 6, 11])
def test_of_many_pictures_an_even_choice(folder, monkeypatch, most):
    monkeypatch.setattr(prepare_scenes, "MOST", most)
    assert 0 < len(list(photographs([folder]))) <= most


def test_files_that_are_no_pictures_are_passed_over(folder):
    (folder / "a/empty.jpg").touch()
    (folder / "a/bad.jpeg").write_bytes(b"no picture")
    (folder / "a/notes.txt").write_text("no picture")
    assert len(list(photographs([folder]))) == 11


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"there is no folder of photographs at .*nowhere"):
        list(photographs([tmp_path / "nowhere"]))


def test_scenes_are_drawn_on_photographs_to_train_on(tmp_path, folder, monkeypatch):
    monkeypatch.setattr("training.data.fonts.FOLDERS", ())  # fonts that are there on every machine
    monkeypatch.setattr("training.kept_files.KEPT", tmp_path / "prepared")
    scenes = [
        scene_of(tmp_path, "own.png", [(20, 20, 60, 20)]),
        Scene(tmp_path / "none.png", np.zeros((0, 4, 2)), (), "val"),  # is never looked at
    ]
    renderer = scene_renderer(scenes, [folder / "b"])
    own = [ground for ground in renderer.grounds if len(ground) == GROUND]
    assert 1 <= len(own) <= WINDOWS
    assert len(renderer.grounds) - len(own) == 6
    drawn = renderer.draw(np.random.default_rng(0), 64, 96)
    assert drawn.pixels.shape == (64, 96, 3)
    assert len(drawn.quads) == len(drawn.legible)
