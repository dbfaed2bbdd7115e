"""Figures of naming species, on vectors whose figures are known."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from export.evaluate_identify import IdentifyFigures, Looks, Sets, auroc, figures, grouped, kept_at, shares
from export.identify_figures import keep_figures
from serving.manifest import EmbedderManifest
from serving.repository import load_repository

ROOT = Path(__file__).parents[2]
CLASSES = ["ash", "elm", "oak"]


def looks(labels, centres, spread, sure=0.8, seed=0):
    """Pictures around the axis of each class, and a classifier that is right with probability `sure`."""
    random = np.random.default_rng(seed)
    vectors = np.eye(8)[centres] + spread * random.normal(size=(len(labels), 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    posteriors = np.full((len(labels), len(CLASSES)), (1 - sure) / 2)
    for row, label in enumerate(labels):
        posteriors[row, CLASSES.index(label) if label in CLASSES else row % 3] = sure
    return Looks(np.array(labels), vectors.astype(np.float32), posteriors)


@pytest.fixture
def sets():
    known = [name for name in CLASSES for _ in range(30)]
    places = [place for place in range(3) for _ in range(30)]
    train, val = looks(known, places, 0.1, seed=1), looks(known, places, 0.1, seed=2)
    return Sets(CLASSES, train, val, looks(["yew"] * 40, [5] * 40, 0.1, sure=0.4, seed=3))


def test_auroc():
    assert auroc(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == 1
    assert auroc(np.array([0.0, 1.0]), np.array([2.0, 3.0])) == 0
    assert auroc(np.array([1.0, 1.0]), np.array([1.0])) == 0.5
    assert auroc(np.array([1.0, 3.0]), np.array([0.0, 2.0])) == 0.75


def test_what_is_kept_while_few_strangers_are_let_in():
    unknown = np.arange(100.0)  # five of them are above 94
    known, right = np.array([95.5, 99.5, 10.0, 97.0]), np.array([True, False, True, True])
    assert kept_at(known, right, unknown) == pytest.approx(2 / 4)


def test_clear_kinds_are_named_and_strangers_refused(sets):
    found = figures(sets)
    assert found.metrics["neighbours/accuracy"] == found.metrics["both/accuracy"] == 1
    assert found.metrics["open set/auroc"] == 1
    assert found.metrics["open set/strangers refused at 95 % kept"] == 1
    assert found.familiar_from is not None


def test_the_vote_is_a_share(sets):
    votes, nearest = shares(sets.val, sets)
    np.testing.assert_allclose(votes.sum(axis=1), 1)
    assert (nearest > 0.9).all()


def test_pictures_of_one_organism_make_up_for_each_other():
    rows = np.array([[0.6, 0.4, 0], [0.6, 0.4, 0], [0.3, 0.7, 0.0]])
    found = grouped(rows, np.zeros(3, dtype=np.int64))
    assert (found["most confident"], found["mean"]) == (0, 1)


def test_without_strangers_there_is_no_threshold(sets):
    nobody = Looks(np.array([], dtype=np.str_), np.zeros((0, 8), np.float32), np.zeros((0, 3)))
    found = figures(Sets(CLASSES, sets.train, sets.val, nobody))
    assert found.familiar_from is None
    assert not any(name.startswith("open set") for name in found.metrics)


def test_figures_stand_in_manifest_and_card(tmp_path):
    shutil.copytree(ROOT / "models/embedder", tmp_path / "embedder")
    before = load_repository(tmp_path)["embedder"].manifest
    for value in (0.5, 0.75):  # a second run replaces the first
        keep_figures(IdentifyFigures({"both/accuracy": value}, -0.01), tmp_path)
    after = load_repository(tmp_path)["embedder"].manifest
    assert isinstance(after, EmbedderManifest)
    assert after.similarity is not None
    assert after.similarity.familiar_from == -0.01
    assert {name: value for name, value in after.metrics.items() if name.startswith("identify/")} == {
        "identify/both/accuracy": 0.75
    }
    assert after.sha256 == before.sha256
    card = (tmp_path / "embedder/1/CARD.md").read_text()
    assert card.count("## Naming species") == 1
    assert "| both/accuracy | 0.750 |" in card
    assert card.index("## Naming species") < card.index("## Trained on")
