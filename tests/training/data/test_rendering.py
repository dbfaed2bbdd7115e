"""The renderer: fonts, words, distortions; that what it draws can be read is looked at with a reader."""

from pathlib import Path

import numpy as np
import pytest

from training.alphabet import PRINTABLE
from training.data.contact_sheet import draw_sheet
from training.data.crop_augment import distort
from training.data.fonts import OWN, Font, find_fonts, legible_fonts, plainly_written
from training.data.rendering import Renderer
from training.data.vocabulary import FEW_WORDS, KINDS, LONGEST, Vocabulary
from training.errors import DataError
from training.metrics.edit_distance import score_readings
from training.models.recognizer import load_recognizer
from training.reading import read_crops

DEJAVU = Font(str(OWN / "DejaVuSans.ttf"), PRINTABLE)


@pytest.fixture
def renderer():
    return Renderer([DEJAVU], Vocabulary(FEW_WORDS))


@pytest.fixture(scope="module")
def reader():
    return load_recognizer("published")


def test_fonts_are_looked_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("training.data.fonts.FOLDERS", ())
    fonts = find_fonts(tmp_path / "fonts.json")
    by_name = {Path(font.path).stem: font for font in fonts}
    assert set(by_name["DejaVuSans"].characters) == set(PRINTABLE)
    assert not any("stix" in name.lower() or name.startswith("cmsy") for name in by_name)  # mathematics
    monkeypatch.setattr("training.data.fonts._look_at", None)
    assert find_fonts(tmp_path / "fonts.json") == fonts


def test_a_font_without_letters_is_left_out(tmp_path, monkeypatch):
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    monkeypatch.setattr("training.data.fonts.FOLDERS", (tmp_path,))
    assert all("broken" not in font.path for font in find_fonts())


def test_fonts_that_nobody_can_read_are_left_out():
    other = Font(str(OWN / "DejaVuSansMono.ttf"), PRINTABLE)

    def read(crops):
        return ["HANDGLOVES", "jumpqvick", "FIXTUREWB", "1234567890", "", "x", "FIX", "1"]

    assert legible_fonts([DEJAVU, other], read) == [DEJAVU]


def test_hairlines_can_be_drawn_with_every_effect(renderer, monkeypatch):
    letters = np.full((40, 90), 0.3, dtype=np.float32)  # nowhere solid
    monkeypatch.setattr("training.data.rendering._letters", lambda *_: letters)
    crops = [renderer.write("hair", DEJAVU, np.random.default_rng(seed)) for seed in range(60)]
    assert all(crop.dtype == np.uint8 and crop.ndim == 3 for crop in crops)


def test_a_reader_reads_plain_words(reader):
    crops = [plainly_written(word, DEJAVU) for word in ("Readleaf", "N17-4GU", "$4.50")]
    assert [reading.text for reading in read_crops(reader, crops)] == ["Readleaf", "N17-4GU", "$4.50"]


def test_the_same_numbers_draw_the_same_word(renderer):
    first, second = (renderer.draw(np.random.default_rng(5)) for _ in range(2))
    assert first[1] == second[1]
    np.testing.assert_array_equal(first[0], second[0])
    assert renderer.draw(np.random.default_rng(6))[1] != first[1]


def test_most_rendered_words_can_be_read(renderer, reader):
    random = np.random.default_rng(0)
    drawn = [renderer.draw(random) for _ in range(120)]
    readings = [reading.text for reading in read_crops(reader, [crop for crop, _ in drawn])]
    figures = score_readings(readings, [word for _, word in drawn])
    assert 0.5 < figures.accuracy < 1  # readable, and not too easy


def test_words_are_printable_and_of_many_kinds():
    vocabulary, random = Vocabulary(FEW_WORDS), np.random.default_rng(0)
    words = [vocabulary.draw(random) for _ in range(3000)]
    assert all(0 < len(word) <= LONGEST and set(word) <= set(PRINTABLE) for word in words)
    assert set("".join(words)) == set(PRINTABLE)
    assert sum(KINDS.values()) == pytest.approx(1)
    for wanted in ("LEAF", "Market", "coffee", "www."):
        assert any(wanted in word for word in words)


def test_a_font_of_capitals_writes_capitals():
    renderer = Renderer([Font(DEJAVU.path, PRINTABLE.upper())], Vocabulary(["leaf"]))
    random = np.random.default_rng(0)
    assert not any(set("leaf") & set(renderer.draw(random)[1]) for _ in range(50))


def test_nothing_to_write_with():
    with pytest.raises(DataError, match="no font to write with"):
        Renderer([], Vocabulary(FEW_WORDS))
    with pytest.raises(DataError, match="no font can write"):
        Renderer([Font(DEJAVU.path, "")], Vocabulary(FEW_WORDS)).draw(np.random.default_rng(0))


def test_photographs_can_be_written_on():
    ground = np.full((200, 300, 3), (0, 255, 0), dtype=np.uint8)
    renderer = Renderer([DEJAVU], Vocabulary(FEW_WORDS), [ground])
    random = np.random.default_rng(1)
    assert renderer._ground(20, 60, random).shape == (20, 60, 3)
    greens = [renderer._ground(20, 60, random).reshape(-1, 3).mean(axis=0) for _ in range(60)]
    assert 8 <= sum(bool(green[1] > 250 and green[0] < 5) for green in greens) <= 40


@pytest.mark.parametrize("size", [(1, 1), (1, 200), (200, 1), (12, 30), (500, 900)])
def test_any_crop_can_be_distorted(size):
    crop = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    for seed in range(25):
        changed = distort(crop, np.random.default_rng(seed), 1.5)
        assert changed.dtype == np.uint8
        assert changed.ndim == 3
        assert min(changed.shape) >= 1
        assert changed.shape[2] == 3
    assert distort(crop, np.random.default_rng(0), 0) is crop


def test_a_contact_sheet(tmp_path, monkeypatch):
    monkeypatch.setattr("training.data.fonts.FOLDERS", ())
    monkeypatch.chdir(tmp_path)
    draw_sheet(tmp_path / "sheets/words.png", 23, seed=0)
    assert (tmp_path / "sheets/words.png").stat().st_size > 10_000
