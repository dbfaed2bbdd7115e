"""The detector's way through a picture, with a network that sees plain rectangles."""

import json
import weakref
from itertools import pairwise

import numpy as np
import pytest

from serving.errors import ManifestInvalid, RequestAbandoned
from serving.manifest import read_manifest
from serving.pipelines.detect import LARGEST, LEAST_CONTRAST, Detector
from serving.pipelines.tiles import FIRST, OVERLAP, TILE, tiles
from serving.repository import StoredModel
from serving.settings import Settings
from serving.timing import Timings

SHIPPED = Settings.model_fields["models_dir"].default
STRIDE, MULTIPLE = 4, 32


class SeesRectangles:
    """Takes all pixels of one colour for a word that lies level; what it gets to see it remembers."""

    def __init__(self):
        self.shapes, self.lent, self.last = [], [], None
        self.blind_to = ()  # colours that it does not see

    def run(self, inputs, timings=None, *, alone=False):
        assert alone  # a tile is waited for
        [(name, pixels)] = inputs.items()
        assert name == "images"
        assert pixels.dtype == np.uint8
        assert all(earlier() is None for earlier in self.lent), "an earlier tile is still in memory"
        self.lent.append(weakref.ref(pixels))
        self.shapes.append(pixels.shape)
        self.last = pixels[0].copy()
        return {"maps": self.maps(pixels[0, ..., 0])[None]}

    def maps(self, grey):
        maps = np.zeros((grey.shape[0] // STRIDE, grey.shape[1] // STRIDE, 7), np.float32)
        for colour in set(np.unique(grey)) - {0, *self.blind_to}:
            rows, columns = np.nonzero(grey == colour)
            left, right, top, bottom = columns.min(), columns.max() + 1, rows.min(), rows.max() + 1
            heart = np.s_[top // STRIDE : bottom // STRIDE, left // STRIDE : right // STRIDE]
            maps[heart] = 0.9, (left + right) / 2, (top + bottom) / 2, right - left, bottom - top, 1, 0
        return maps


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The shipped detector's manifest with numbers that this test knows."""
    folder = tmp_path_factory.mktemp("models") / "detector/1"
    folder.mkdir(parents=True)
    manifest = json.loads((SHIPPED / "detector/1/manifest.json").read_text())
    manifest |= {"stride": STRIDE, "multiple": MULTIPLE, "thresholds": {"heart": 0.5, "word": 0.6}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return StoredModel(read_manifest(folder), folder)


@pytest.fixture
def network(monkeypatch):
    """It knows colours exactly: the first look is at the picture itself, unscaled."""
    monkeypatch.setattr("serving.pipelines.tiles.FIRST", 1.0)
    return SeesRectangles()


@pytest.fixture
def find(model, network):
    """`find(picture)`: left, top, width and height of words, from above."""
    detector = Detector(network, model)

    def boxes(picture):
        found = detector(picture)
        assert len(found.boxes) == len(found.scores)
        cx, cy, width, height, cosine, sine = found.boxes.T
        np.testing.assert_allclose(cosine, 1)
        np.testing.assert_allclose(sine, 0, atol=1e-6)
        rows = np.stack([cx - width / 2, cy - height / 2, width, height], axis=1)
        return sorted(np.round(rows).astype(int).tolist(), key=lambda row: (row[1], row[0]))

    return boxes


def picture_of(words, size):
    """Words (left, top, width, height), each of a colour of its own."""
    width, height = size
    picture = np.zeros((height, width, 3), np.uint8)
    for number, (left, top, wide, tall) in enumerate(words):
        picture[top : top + tall, left : left + wide] = 40 + 3 * number
    return picture


def borders(length):
    """Where one tile's words end and the next one's begin."""
    found = sorted({(tile.left, tile.right) for tile in tiles(length, 50)})
    return [(following[0] + part[1]) // 2 for part, following in pairwise(found)]


def test_a_small_picture_is_padded_and_looked_at_once(find, network):
    words = [(12, 8, 40, 12), (20, 40, 60, 20)]
    picture = picture_of(words, (100, 70))
    assert find(picture) == [list(word) for word in words]
    assert network.shapes == [(1, 96, 128, 3)]
    np.testing.assert_array_equal(network.last[:70, :100], picture)
    assert not network.last[70:].any()
    assert not network.last[:, 100:].any()


def test_what_fits_is_not_padded(find, network):
    assert find(picture_of([(12, 8, 40, 12)], (128, 96)))
    assert network.shapes == [(1, 96, 128, 3)]


@pytest.mark.parametrize("size", [(3000, 2200), (700, 5000), (5000, 40)])
def test_words_of_a_large_picture_are_put_back(find, network, size):
    random = np.random.default_rng(0)
    width, height = size
    words = []
    for top in range(4, height - 24, 400):
        left = 4 * int(random.integers(0, 20))
        while left + 60 < width and len(words) < 70:
            words.append((left, top, 60, 20))
            left += 60 + 4 * int(random.integers(10, 100))
    assert len(words) > 15
    assert find(picture_of(words, size)) == sorted(map(list, words), key=lambda word: (word[1], word[0]))
    assert all(shape[0] == 1 and max(shape[1:]) <= 1.25 * TILE + MULTIPLE for shape in network.shapes)


@pytest.mark.parametrize("offset", range(-OVERLAP, OVERLAP + 1, 24))
def test_a_word_on_a_border_is_found_once_and_whole(find, offset):
    size = 2400, 2000
    x, y = borders(size[0])[0], borders(size[1])[0]
    word = [x + offset - 90, y + offset // 2 - 20, 180, 40]
    assert find(picture_of([word], size)) == [word]


@pytest.mark.parametrize(("width", "height"), [(300, 60), (600, 80), (900, 40)])
def test_a_long_word_on_a_border_is_whole(find, width, height):
    word = [borders(2400)[0] - width // 2, 100, width, height]
    assert find(picture_of([word], (2400, 400))) == [word]


def test_the_whole_of_a_large_word_is_better_than_its_parts(find):
    word = [borders(2400)[0] // 4 * 4 - 352, 100, 704, 160]
    assert find(picture_of([word], (2400, 400))) == [word]


def test_a_word_larger_than_a_tile_is_seen_from_afar(find):
    words = [[200, 160, 2400, 480], [400, 1200, 64, 24]]
    assert words[0][3] > LARGEST
    assert find(picture_of(words, (3200, 1600))) == words


def test_a_word_that_two_looks_see_is_found_once(find):
    word = [400, 400, 640, 160]  # 40 pixels high from farther away
    assert find(picture_of([word], (1280, 960))) == [word]


@pytest.mark.parametrize(("height", "seen"), [(80, False), (160, True)])
def test_what_is_small_from_afar_is_left_to_the_nearer_look(find, network, height, seen):
    """Stripes that only blur to a word in the farther look."""
    picture = np.zeros((960, 1280, 3), np.uint8)
    word = [400, 400, 480, height]
    picture[400 : 400 + height, 400:880:2] = 160
    picture[400 : 400 + height, 401:880:2] = 180
    network.blind_to = 160, 180
    assert find(picture) == ([word] if seen else [])
    assert len(network.shapes) == (2 if seen else 4)  # where nothing is found, the picture is turned, too


def test_blank_tiles_are_not_run(find, network):
    word = [5800, 3900, 80, 24]
    assert find(picture_of([word], (6000, 4000))) == [word]
    near, *far = network.shapes
    assert max(near[1:3]) <= TILE + MULTIPLE
    assert len(far) <= 4  # of 24 tiles, one has the word; then one for each farther look, and its neighbours


def test_nothing_is_run_for_a_blank_picture(find, network):
    for size in ((1, 1), (33, 65), (2000, 1800)):
        assert find(np.full((*size, 3), 255, np.uint8)) == []
    assert network.shapes == []


def test_how_much_contrast_is_none(find, network):
    picture = np.full((64, 64, 3), 100, np.uint8)
    picture[20:40, 20:40] += LEAST_CONTRAST - 1
    find(picture)
    assert network.shapes == []
    picture[30, 30, 2] += 1
    find(picture)
    assert network.shapes == [(1, 64, 64, 3)]


@pytest.mark.parametrize(("size", "runs"), [((1, 1), 0), ((2, 700), 0), ((700, 2), 0), ((33, 31), 2)])
def test_tiny_pictures_with_something_on_them(find, network, size, runs):
    picture = np.zeros((*size, 3), np.uint8)
    picture[0, 0] = 200, 0, 100
    assert find(picture) == []
    assert len(network.shapes) == runs


def test_one_tile_is_in_memory_at_a_time(find, network):
    """The network itself looks: see above."""
    words = [(x, y, 60, 20) for x in (100, 1500, 2900) for y in (100, 1500, 2900)]
    assert len(find(picture_of(words, (3600, 3600)))) == 9
    assert len(network.lent) >= 9


def test_another_model_is_no_detector(network):
    folder = SHIPPED / "embedder/1"
    with pytest.raises(ManifestInvalid, match="its task is embed"):
        Detector(network, StoredModel(read_manifest(folder), folder))


class SeesOneWord:
    """Finds a word in the middle of whatever it sees, 100 × 20 pixels, read as it is told."""

    def __init__(self, *directions):
        self.directions, self.shapes = list(directions), []

    def run(self, inputs, timings=None, *, alone=False):
        if timings is not None:
            timings.check()
        [pixels] = inputs.values()
        self.shapes.append(pixels.shape[1:3])
        maps = np.zeros((1, pixels.shape[1] // STRIDE, pixels.shape[2] // STRIDE, 7), np.float32)
        if self.directions:
            angle = np.deg2rad(self.directions.pop(0))
            rows, columns = np.array(maps.shape[1:3]) // 2
            place = ((columns + 0.5) * STRIDE, (rows + 0.5) * STRIDE)
            maps[0, rows, columns] = 0.9, *place, 100, 20, np.cos(angle), np.sin(angle)
        return {"maps": maps}


def noise(height, width):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_boxes_are_in_pixels_of_the_picture_whatever_is_looked_at(model):
    network = SeesOneWord(0)
    [box] = Detector(network, model)(noise(450, 900)).boxes
    assert network.shapes[0] == (416, 800)  # 400 × 800, filled up
    np.testing.assert_allclose(box[:2], np.array([402, 210]) * FIRST, atol=0.1)
    np.testing.assert_allclose(box[2:4], np.array([100, 20]) * FIRST, rtol=1e-4)


@pytest.mark.parametrize("direction", [90, -90, 180, 40])
def test_text_that_lies_aslant_is_looked_at_upright(model, direction):
    network = SeesOneWord(direction, 0)
    words = Detector(network, model)(noise(320, 320))
    assert len(network.shapes) == 2
    assert network.shapes[1][0] == pytest.approx(320 if direction != 40 else 450, abs=MULTIPLE)
    [best, *_] = words.boxes
    angle = np.degrees(np.arctan2(best[5], best[4]))
    assert abs((angle - direction + 180) % 360 - 180) < 1
    # What it finds is the middle of a canvas that was filled up to a multiple.
    np.testing.assert_allclose(best[:2], [162, 162], atol=24)


def test_level_text_is_looked_at_once(model):
    network = SeesOneWord(10, 0)
    Detector(network, model)(noise(320, 320))
    assert len(network.shapes) == 1


def test_where_nothing_is_found_a_picture_is_looked_at_from_the_side(model):
    network = SeesOneWord()
    assert len(Detector(network, model)(noise(200, 320)).boxes) == 0
    assert network.shapes == [(224, 320), (320, 224)]


@pytest.mark.parametrize("looks", [1, 2])
def test_it_looks_no_further_for_who_has_gone(model, looks):
    """Neither at the next tile nor at the picture turned."""
    timings = Timings()

    class SeesAClientGo(SeesOneWord):
        def run(self, inputs, given=None, *, alone=False):
            assert given is timings
            found = super().run(inputs, given, alone=alone)
            if len(self.shapes) == looks:
                timings.abandon()
            return found

    network = SeesAClientGo(90, 0)
    with pytest.raises(RequestAbandoned):
        Detector(network, model)(noise(320 if looks == 1 else 2400, 320), timings)
    assert len(network.shapes) == looks
