"""Rendered scenes: the words are where their quadrilaterals say, and are marked where nobody can read them."""

import cv2
import numpy as np
import pytest

from training.alphabet import PRINTABLE
from training.data.fonts import OWN, Font
from training.data.scene_rendering import LEAST_HEIGHT, Canvas, SceneRenderer
from training.data.scene_text import Typesetter
from training.data.vocabulary import FEW_WORDS, Vocabulary
from training.errors import DataError

DEJAVU = Font(str(OWN / "DejaVuSans.ttf"), PRINTABLE)
SERIF = Font(str(OWN / "DejaVuSerif.ttf"), PRINTABLE)


@pytest.fixture
def renderer():
    return SceneRenderer([DEJAVU, SERIF], Vocabulary(FEW_WORDS))


@pytest.fixture
def typesetter():
    return Typesetter([DEJAVU, SERIF], Vocabulary(FEW_WORDS))


def turning(quads):
    """Twice the area of each quadrilateral, above 0 where it is clockwise with y pointing down: [M]."""
    after = np.roll(quads, -1, axis=1)
    return (quads[:, :, 0] * after[:, :, 1] - after[:, :, 0] * quads[:, :, 1]).sum(axis=1)


def flattened(ink, quad, height=100, width=300):
    """What a quadrilateral shows."""
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    return cv2.warpPerspective(ink, cv2.getPerspectiveTransform(quad.astype(np.float32), corners), (width, height))


def test_the_same_numbers_draw_the_same_scene(renderer):
    first, second, other = (renderer.draw(np.random.default_rng(seed), 200, 300) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.pixels, second.pixels)
    np.testing.assert_array_equal(first.quads, second.quads)
    np.testing.assert_array_equal(first.legible, second.legible)
    assert first.texts == second.texts
    assert not np.array_equal(first.pixels, other.pixels)


def test_scenes_are_as_promised(renderer):
    random = np.random.default_rng(0)
    scenes = [renderer.draw(random, 320, 480) for _ in range(30)]
    for scene in scenes:
        assert scene.pixels.shape == (320, 480, 3)
        assert scene.pixels.dtype == np.uint8
        assert scene.quads.dtype == np.float32
        assert scene.quads.shape == (len(scene.texts), 4, 2)
        assert scene.legible.shape == (len(scene.texts),)
        assert scene.quads.min(initial=0) >= 0
        assert np.all(scene.quads <= (480, 320))
        assert np.all(turning(scene.quads) > 0)
    legible = np.concatenate([scene.legible for scene in scenes])
    assert 0.5 < legible.mean() < 1
    assert sum(len(scene.texts) for scene in scenes) > 100


def test_ink_lies_in_its_quadrilateral_however_it_is_turned(typesetter):
    random = np.random.default_rng(2)
    words = 0
    for _ in range(40):
        canvas = Canvas(np.full((400, 400, 3), 128, dtype=np.uint8))
        canvas.put(typesetter.set_block(random, 40, 2, 2), 40, random)
        quads = np.concatenate([np.zeros((0, 4, 2), dtype=np.float32), *canvas.quads])
        around = cv2.fillPoly(np.zeros((400, 400), dtype=np.uint8), list(np.rint(quads).astype(np.int32)), (1,))
        assert not np.any(canvas.ink[cv2.dilate(around, np.ones((3, 3))) == 0] > 64)
        for quad in quads:
            if quad.min() < 0 or quad.max() > 400:
                continue
            word = flattened(canvas.ink, quad) > 100
            rows, columns = np.flatnonzero(word.any(axis=1)), np.flatnonzero(word.any(axis=0))
            assert rows[0] < 25
            assert rows[-1] > 75
            assert columns[-1] - columns[0] > 150
            words += 1
    assert words > 60


def test_quadrilaterals_run_in_the_direction_of_reading(typesetter):
    random = np.random.default_rng(3)
    seen = 0
    for _ in range(40):
        layout = typesetter.set_block(random, 60, 1, 1)
        canvas = Canvas(np.full((500, 500, 3), 128, dtype=np.uint8))
        canvas.put(layout, 60, random)
        if not canvas.quads or canvas.quads[0].min() < 0 or canvas.quads[0].max() > 500:
            continue
        flat, turned = flattened(layout.letters, layout.quads()[0]), flattened(canvas.ink, canvas.quads[0][0])
        alike = [np.corrcoef(flat.ravel(), np.rot90(turned, turn).ravel())[0, 1] for turn in (0, 2)]
        assert alike[0] > max(0.6, alike[1])
        seen += 1
    assert seen > 25


def test_words_do_not_lie_on_each_other(renderer):
    random = np.random.default_rng(4)
    for _ in range(15):
        scene = renderer.draw(random, 400, 400)
        cores = np.zeros((400, 400), dtype=np.int64)
        for quad in scene.quads:
            core = (quad - quad.mean(axis=0)) * 0.6 + quad.mean(axis=0)
            cores += cv2.fillConvexPoly(np.zeros((400, 400), dtype=np.uint8), core.astype(np.int32), (1,))
        assert np.mean(cores > 1) < 1e-3


def one_word(monkeypatch, size):
    """A block of the word market."""
    monkeypatch.setattr(Typesetter, "_text", lambda *_: "market")
    return Typesetter([DEJAVU], Vocabulary(FEW_WORDS)).set_block(np.random.default_rng(0), size, 1, 1)


def put_plainly(monkeypatch, ink, size):
    """A scene of one word in some ink on grey, without a camera."""
    monkeypatch.setattr("training.data.scene_rendering.photograph", lambda pixels, _: pixels)
    monkeypatch.setattr("training.data.scene_signs.ink_colour", lambda *_: np.full(3, float(ink)))
    monkeypatch.setattr("training.data.scene_placement._tilt", lambda _: 0.0)
    layout = one_word(monkeypatch, size)
    for seed in range(20):  # until it is put right on the ground, within the picture
        random = np.random.default_rng(seed)
        canvas = Canvas(np.full((300, 300, 3), 128, dtype=np.uint8))
        canvas.put(layout, size, random)
        if canvas.quads and np.all(canvas.pixels[canvas.ink == 0] == 128):
            return canvas.finished(np.random.default_rng(0))
    raise AssertionError("no seed puts the word on the bare ground")


@pytest.mark.parametrize(
    ("ink", "size", "legible"), [(255, 40, True), (0, 40, True), (134, 40, False), (255, 6, False)]
)
def test_pale_and_tiny_words_are_marked(monkeypatch, ink, size, legible):
    scene = put_plainly(monkeypatch, ink, size)
    assert scene.legible.tolist() == [legible]
    left = np.linalg.norm(scene.quads[0, 3] - scene.quads[0, 0])
    assert (left < LEAST_HEIGHT) == (size == 6)


@pytest.mark.parametrize(("cut", "drawn", "legible"), [(0, True, True), (0.3, True, False), (0.7, False, False)])
def test_words_cut_by_the_edge_are_marked(monkeypatch, cut, drawn, legible):
    layout = one_word(monkeypatch, 42)
    height, width = layout.letters.shape
    left, _, right, _ = layout.boxes[0]
    corners = np.array([[0, 9], [width, 9], [width, 9 + height], [0, 9 + height]], dtype=np.float64)
    place = corners - (left + cut * (right - left), 0)
    monkeypatch.setattr("training.data.scene_placement.Free.take", lambda *_: place)
    monkeypatch.setattr("training.data.scene_rendering.photograph", lambda pixels, _: pixels)
    monkeypatch.setattr("training.data.scene_signs.ink_colour", lambda *_: np.zeros(3))
    canvas = Canvas(np.full((200, 400, 3), 200, dtype=np.uint8))
    canvas.put(layout, 42, np.random.default_rng(0))  # these numbers give no panel
    scene = canvas.finished(np.random.default_rng(0))
    assert scene.legible.tolist() == [legible] * drawn
    assert np.any(scene.pixels != 200) == drawn
    assert scene.quads.min(initial=0) >= 0


@pytest.mark.parametrize("size", [(1, 1), (1, 200), (200, 1), (7, 9), (33, 65)])
def test_tiny_pictures_do_not_fail(renderer, size):
    for seed in range(12):
        scene = renderer.draw(np.random.default_rng(seed), *size)
        assert scene.pixels.shape == (*size, 3)
        assert not scene.legible.any() or min(size) > LEAST_HEIGHT


def test_nothing_to_write_with():
    with pytest.raises(DataError, match="no font to write with"):
        SceneRenderer([], Vocabulary(FEW_WORDS))
    with pytest.raises(DataError, match="no font can write"):
        SceneRenderer([Font(DEJAVU.path, "")], Vocabulary(FEW_WORDS)).draw(np.random.default_rng(0), 50, 50)


def test_photographs_are_written_on():
    green = np.full((90, 130, 3), (0, 255, 0), dtype=np.uint8)
    renderer = SceneRenderer([DEJAVU], Vocabulary(FEW_WORDS), [green])
    random = np.random.default_rng(0)
    colours = np.stack([renderer.draw(random, 100, 100).pixels.mean(axis=(0, 1)) for _ in range(30)])
    greener = colours[:, 1] - colours[:, [0, 2]].max(axis=1)
    assert np.median(greener) > 60
