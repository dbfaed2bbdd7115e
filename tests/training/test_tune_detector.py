"""Tuning on LS-IoU, on KFIoU and on the proxy: every arm runs, and only what joins the stages and the head moves."""

import json
import math
from functools import partial

import cv2
import numpy as np
import pytest
import torch

from export.reading import WHILE_TRAINING, gather_as_served
from training import tune_detector as module
from training.errors import DataError
from training.models.dense_detector import DetectorShape, published_detector
from training.models.detectors import load_detector, save_detector
from training.models.rrpn import Rrpn, RrpnShape
from training.surrogates.pairs import Sources
from training.tune_detector import PAIRS, DetectorTuning, tune_detector

GATHER = partial(gather_as_served, WHILE_TRAINING)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where views that were looked at are kept, for all tests here."""
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(autouse=True)
def small(kept, monkeypatch):
    monkeypatch.setattr("training.kept_files.KEPT", kept)
    for name, value in {"RECENT": 128, "POOL": 400, "BOXES": 32}.items():
        monkeypatch.setattr(module, name, value)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A detector to tune, not trained at all."""
    file = tmp_path_factory.mktemp("start") / "best.pt"
    torch.manual_seed(0)
    save_detector(published_detector(DetectorShape()), file)
    return file


def tuning(start, **changes):
    asked = {"views": 6, "batch": 2, "size": 96, "synthetic": 0.0, "first_steps": 20, "rounds": 2}
    steps = {"surrogate_steps": 2, "model_steps": 2, "rate": 1e-4, "validate_every": 5}
    return DetectorTuning(str(start), **{**asked, **steps, **changes})


def log_of(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def moved(start, best):
    """Parts of the network that are not what they were."""
    before, after = (load_detector(str(file)).state_dict() for file in (start, best))
    return {
        ".".join(name.split(".")[: 2 if name.startswith("backbone") else 1])
        for name, value in after.items()
        if not torch.equal(value, before[name])
    }


@pytest.mark.parametrize(
    ("loss", "pairs"), [("proxy", "local"), ("kfiou", "local"), *(("ls_iou", pairs) for pairs in PAIRS)]
)
def test_every_tuning_runs(scene_folder, start, tmp_path, monkeypatch, loss, pairs):
    asked = []

    def sources(generator, model, recent, *, local):
        asked.append((generator is not None, local))
        return Sources(generator, model, recent, local=local)

    monkeypatch.setattr(module, "Sources", sources)
    run = tmp_path / "run"
    best = tune_detector(tuning(start, loss=loss, pairs=pairs), [scene_folder], run, GATHER)
    model = load_detector(str(best))
    assert model.provenance.losses == (loss,)
    assert model.provenance.data[0].startswith("PP-OCRv6 small")
    assert moved(start, best) == {"backbone.narrowed", "backbone.looked_at", "first", "last"}
    lines = log_of(run)
    assert [line["step"] for line in lines] == [0, 2]
    assert all(math.isfinite(line["mean loss"]) for line in lines[1:])
    assert all(0 <= line["detection/f1"] <= 1 for line in lines)
    assert asked == ([(pairs != "local", pairs != "global")] if loss == "ls_iou" else [])
    if loss == "ls_iou":
        assert all(line["error of the surrogate"] >= 0 for line in lines[1:])
        for when in ("start", "end"):
            quality = json.loads((run / f"quality_{when}.json").read_text())
            assert quality["pairs"] > 0
            assert len(quality["by overlap"]) == 10
            assert 0 <= quality["mean"] < 10
            assert (run / f"band_{when}.png").stat().st_size > 1000
        assert (run / "learning.png").stat().st_size > 1000


@pytest.mark.parametrize("loss", ["kfiou", "ls_iou"])
def test_an_rrpn_is_tuned_whole(scene_folder, tmp_path, loss):
    torch.manual_seed(0)
    shape = RrpnShape("resnet18", scales=(1.5, 3), hidden=16, pooled=8, units=16, candidates=100, proposals=20)
    save_detector(Rrpn(shape), tmp_path / "start.pt")
    asked = tuning(tmp_path / "start.pt", loss=loss, rounds=1)
    best = tune_detector(asked, [scene_folder], tmp_path / "run", GATHER)
    model = load_detector(str(best))
    assert isinstance(model, Rrpn)
    assert model.provenance.losses == (loss,)
    assert {"backbone.conv1", "reduce", "second", "box_moves"} <= moved(tmp_path / "start.pt", best)
    assert math.isfinite(log_of(tmp_path / "run")[-1]["mean loss"])


@pytest.mark.parametrize("loss", ["proxy", "kfiou"])
def test_losses_fall(scene_folder, start, tmp_path, loss):
    asked = tuning(start, loss=loss, rounds=3, model_steps=10, rate=2e-3, validate_every=1)
    tune_detector(asked, [scene_folder], tmp_path / "run", GATHER)
    _, first, *_, last = log_of(tmp_path / "run")
    assert last["mean loss"] < 0.9 * first["mean loss"]


def test_arms_of_one_start_share_their_views(scene_folder, start, tmp_path, monkeypatch):
    asked = tuning(start, loss="proxy", rounds=1, model_steps=1, views=4, seed=3)
    tune_detector(asked, [scene_folder], tmp_path / "first", GATHER)
    with monkeypatch.context() as without:
        without.setattr(module, "SceneFeed", None)
        tune_detector(asked, [scene_folder], tmp_path / "second", GATHER)
        with pytest.raises(TypeError):  # other views have to be looked at
            tune_detector(tuning(start, views=2), [scene_folder], tmp_path / "third", GATHER)
    first, second = (load_detector(str(tmp_path / name / "best.pt")) for name in ("first", "second"))
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.fixture
def mostly_bare(scene_folder, tmp_path):
    """A photograph with a word in 20 without: most batches show none."""
    folder = tmp_path / "bare"
    folder.mkdir()
    table = (scene_folder / "labels.tsv").read_text().splitlines()
    rows = [line for line in table if line.startswith(("file", "a.png", "c.png"))]
    for name in ("a.png", "c.png"):
        (folder / name).symlink_to(scene_folder / name)
    for number in range(20):
        cv2.imwrite(str(folder / f"{number}.png"), np.full((96, 128, 3), 10 * number, dtype=np.uint8))
        rows.append(f"{number}.png\t2\t88\t30\t88\t30\t94\t2\t94\t###\ttrain")
    (folder / "labels.tsv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize("loss", ["kfiou", "ls_iou"])
def test_batches_without_a_word(mostly_bare, start, tmp_path, loss):
    asked = tuning(start, loss=loss, views=12, batch=1, rounds=2, model_steps=6)
    best = tune_detector(asked, [mostly_bare], tmp_path / "run", GATHER)
    assert all(torch.isfinite(value).all() for value in load_detector(str(best)).state_dict().values())
    assert all(math.isfinite(line["mean loss"]) for line in log_of(tmp_path / "run")[1:])


def test_photographs_without_any_word_are_named(mostly_bare, start, tmp_path):
    table = (mostly_bare / "labels.tsv").read_text().splitlines()
    (mostly_bare / "labels.tsv").write_text("\n".join(line for line in table if not line.startswith("a.png")) + "\n")
    with pytest.raises(DataError, match="show no word to be found"):
        tune_detector(tuning(start, loss="kfiou"), [mostly_bare], tmp_path / "run", GATHER)


def test_the_start_need_not_be_validated(scene_folder, start, tmp_path):
    asked = tuning(start, loss="proxy", rounds=1, model_steps=1, views=4, validate_start=False)
    tune_detector(asked, [scene_folder], tmp_path / "run", GATHER)
    assert [line["step"] for line in log_of(tmp_path / "run")] == [1]


def test_words_without_area_are_no_pairs_to_learn_from(scene_folder, start, tmp_path):
    folder = tmp_path / "flat"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.png").symlink_to(scene_folder / f"{name}.png")
    flat = ["a.png\t5\t5\t25\t5\t25\t5\t5\t5\tline\ttrain", "a.png\t9\t9\t9\t9\t9\t9\t9\t9\tpoint\ttrain"]
    table = (scene_folder / "labels.tsv").read_text().splitlines()
    (folder / "labels.tsv").write_text("\n".join([*table, *flat]) + "\n")
    best = tune_detector(tuning(start, rounds=1), [folder], tmp_path / "run", GATHER)
    assert all(torch.isfinite(value).all() for value in load_detector(str(best)).state_dict().values())


def test_impossible_configs_are_named():
    with pytest.raises(DataError, match="loss is 'hope'; it must be one of proxy, kfiou, ls_iou"):
        DetectorTuning("x.pt", loss="hope")
    with pytest.raises(DataError, match="pairs is 'all'; it must be one of global, local, local_global"):
        DetectorTuning("x.pt", pairs="all")
    with pytest.raises(DataError, match="views for a batch, not 30 and 3"):
        DetectorTuning("x.pt", views=3)
    with pytest.raises(DataError, match="needs a round"):
        DetectorTuning("x.pt", rounds=0)


def test_a_start_that_is_not_there(scene_folder, tmp_path):
    with pytest.raises((DataError, OSError), match=r"none\.pt"):
        tune_detector(tuning(tmp_path / "none.pt"), [scene_folder], tmp_path / "run", GATHER)
