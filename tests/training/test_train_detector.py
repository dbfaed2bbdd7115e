"""Training the detector on photographs made on the spot: it learns, and can be stopped and goes on the same."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch

from export.reading import WHILE_TRAINING, gather_as_served
from training import train_detector as module
from training.alphabet import PRINTABLE
from training.data.fonts import OWN, Font
from training.data.scene_feed import SceneFeed
from training.data.scene_rendering import SceneRenderer
from training.data.vocabulary import FEW_WORDS, Vocabulary
from training.errors import DataError
from training.models.dense_detector import DetectorShape, published_detector
from training.models.detectors import load_detector, save_detector
from training.models.picture_backbone import published_picture_backbone
from training.models.rrpn import Rrpn, RrpnShape
from training.train_detector import DetectorTraining, train_detector

GATHER = partial(gather_as_served, WHILE_TRAINING)


SMALL_RRPN = RrpnShape("resnet18", scales=(1.5, 3), hidden=16, pooled=8, units=16, candidates=100, proposals=20)
THESIS = {"network": "rrpn", "rrpn": SMALL_RRPN, "start": "nothing", "frozen_stages": -1, "optimizer": "sgd"}


def config(**changes):
    small = {"steps": 4, "batch": 2, "size": 96, "synthetic": 0.0, "validate_every": 2, "average": 0.9}
    return DetectorTraining(**{**small, **changes})


def log_of(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def checkpoint_of(run):
    return torch.load(run / "checkpoint.pt", weights_only=True)


def test_it_trains_and_says_what_it_learned_from(scene_folder, tmp_path):
    best = train_detector(config(), [scene_folder], tmp_path / "run", GATHER)
    model = load_detector(str(best))
    assert model.provenance.losses == ("smooth-L1",)
    assert model.provenance.data[0].startswith("PP-OCRv6 small")
    assert model.provenance.data[1].endswith(": 2 photographs with 5 words")
    assert len(model.provenance.data) == 2  # nothing was drawn
    assert [line["step"] for line in log_of(tmp_path / "run")] == [2, 4]
    for line in log_of(tmp_path / "run"):
        assert 0 < line["threshold"] < 1
        assert 0 <= line["detection/f1"] <= 1
    assert (tmp_path / "run/curves.png").stat().st_size > 1000


def test_losses_fall(scene_folder, tmp_path, monkeypatch):
    draw = SceneFeed.draw
    monkeypatch.setattr(SceneFeed, "draw", lambda feed, step: draw(feed, 0))  # always the same views
    train_detector(config(steps=16, validate_every=4), [scene_folder], tmp_path / "run", GATHER)
    first, *_, last = log_of(tmp_path / "run")
    assert last["mean loss"] < 0.7 * first["mean loss"]
    assert last["box loss"] < 0.7 * first["box loss"]


def test_the_detector_of_the_thesis_starts_from_nothing(scene_folder, tmp_path):
    best = train_detector(config(steps=2, **THESIS), [scene_folder], tmp_path / "run", GATHER)
    model = load_detector(str(best))
    assert isinstance(model, Rrpn)
    assert model.shape == SMALL_RRPN
    assert model.provenance.losses == ("smooth-L1",)
    assert len(model.provenance.data) == 1
    optimizer = checkpoint_of(tmp_path / "run")["optimizer"]
    assert [group["momentum"] for group in optimizer["param_groups"]] == [0.9]


def test_what_is_kept_is_the_average(scene_folder, tmp_path):
    best = train_detector(config(validate_every=4), [scene_folder], tmp_path / "run", GATHER)
    state = checkpoint_of(tmp_path / "run")
    kept = load_detector(str(best)).state_dict()
    for name, value in state["average"]["weights"].items():
        torch.testing.assert_close(kept[name], value)
    assert not torch.equal(kept["last.weight"], state["model"]["last.weight"])


@pytest.mark.parametrize("network", ["dense", "rrpn"])
def test_a_training_that_was_stopped_goes_on_the_same(scene_folder, tmp_path, monkeypatch, network):
    monkeypatch.setattr(module, "CHECKPOINT_EVERY", 3)
    asked = config(validate_every=4, **(THESIS if network == "rrpn" else {}))
    train_detector(asked, [scene_folder], tmp_path / "whole", GATHER)
    learn, seen = module._Training.learn, []

    def until_the_fourth(self, batch):
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(1)
        return learn(self, batch)

    monkeypatch.setattr(module._Training, "learn", until_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        train_detector(asked, [scene_folder], tmp_path / "run", GATHER)
    assert checkpoint_of(tmp_path / "run")["progress"]["step"] == 3
    monkeypatch.setattr(module._Training, "learn", learn)
    train_detector(asked, [scene_folder], tmp_path / "run", GATHER, resume=True)
    whole, resumed = (checkpoint_of(tmp_path / name) for name in ("whole", "run"))
    torch.testing.assert_close(resumed["model"], whole["model"])
    torch.testing.assert_close(resumed["average"]["weights"], whole["average"]["weights"])
    assert resumed["progress"]["step"] == resumed["average"]["steps"] == 4
    one, other = (log_of(tmp_path / name) for name in ("whole", "run"))
    assert [line | {"core minutes": 0} for line in other] == [pytest.approx(line | {"core minutes": 0}) for line in one]


def test_a_training_that_is_done_stays_as_it_is(scene_folder, tmp_path):
    train_detector(config(steps=2), [scene_folder], tmp_path / "run", GATHER)
    before = (tmp_path / "run/best.pt").read_bytes(), log_of(tmp_path / "run")
    train_detector(config(steps=2), [scene_folder], tmp_path / "run", GATHER, resume=True)
    assert ((tmp_path / "run/best.pt").read_bytes(), log_of(tmp_path / "run")) == before
    with pytest.raises(DataError, match="holds a training already"):
        train_detector(config(steps=2), [scene_folder], tmp_path / "run", GATHER)


@pytest.mark.parametrize(("frozen", "still"), [(-1, set()), (0, {"stem"}), (1, {"stem", 0}), (4, {"stem", 0, 1, 2, 3})])
def test_frozen_stages_stand_still(scene_folder, tmp_path, frozen, still):
    asked = config(steps=1, validate_every=1, frozen_stages=frozen, weight_decay=0.5, warmup=0.0)
    best = train_detector(asked, [scene_folder], tmp_path / "run", GATHER)
    published = published_picture_backbone().backbone
    trained = load_detector(str(best)).backbone
    parts = {"stem": (trained.stem, published.stem)}
    parts |= dict(enumerate(zip(trained.stages, published.stages, strict=True)))
    parts |= {"join": (trained.narrowed, published.narrowed)}
    same = {
        name
        for name, (own, theirs) in parts.items()
        if all(torch.equal(one, two) for one, two in zip(own.parameters(), theirs.parameters(), strict=True))
    }
    assert same == still


def test_scenes_are_drawn_as_well(scene_folder, tmp_path, monkeypatch):
    asked = []

    def renderer(scenes, folders):
        asked.append((len(scenes), list(folders)))
        return SceneRenderer([Font(str(OWN / "DejaVuSans.ttf"), PRINTABLE)], Vocabulary(FEW_WORDS))

    monkeypatch.setattr(module, "scene_renderer", renderer)
    best = train_detector(
        config(steps=1, synthetic=1.0), [scene_folder], tmp_path / "run", GATHER, grounds=[tmp_path / "grounds"]
    )
    assert asked == [(3, [tmp_path / "grounds"])]
    assert load_detector(str(best)).provenance.data[2].startswith("drawn scenes: ")


def test_a_training_goes_on_from_a_checkpoint(scene_folder, tmp_path):
    start = train_detector(config(steps=1), [scene_folder], tmp_path / "first", GATHER)
    again = config(steps=1, start=str(start), rate=1e-3, warmup=0.0)
    best = train_detector(again, [scene_folder], tmp_path / "second", GATHER)
    model = load_detector(str(best))
    assert model.provenance.losses == ("smooth-L1", "smooth-L1")
    assert len(model.provenance.data) == 2  # the same data, named once
    rates = [group["full"] for group in checkpoint_of(tmp_path / "second")["optimizer"]["param_groups"]]
    assert set(rates) == {1e-3}  # a head that was trained before learns as slowly as the rest
    published = [group["full"] for group in checkpoint_of(tmp_path / "first")["optimizer"]["param_groups"]]
    assert published == [5e-4, 2e-3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": "eyes"}, "network is 'eyes'; it must be one of dense, rrpn"),
        ({"optimizer": "luck"}, "optimizer is 'luck'; it must be one of adamw, sgd"),
        ({"network": "rrpn"}, "an rrpn starts from nothing or from a checkpoint"),
        (THESIS | {"frozen_stages": 1}, "has no stages to freeze: set -1"),
        ({"steps": 0}, "steps must be above 0, not 0"),
        ({"rate": -1.0}, "rate must be above 0"),
        ({"size": 100}, "size must be a multiple of 32, not 100"),
        ({"synthetic": 1.5}, "synthetic must be between 0 and 1, not 1.5"),
        ({"average": -0.1}, "average must be between 0 and 1"),
    ],
)
def test_impossible_configs_are_named(changes, message):
    with pytest.raises(DataError, match=message):
        config(**changes)


def test_a_start_of_another_shape_is_refused(scene_folder, tmp_path):
    save_detector(published_detector(DetectorShape(hidden=8)), tmp_path / "start.pt")
    with pytest.raises(DataError, match=r"hidden=8.* the config asks for .*hidden=64"):
        train_detector(config(start=str(tmp_path / "start.pt")), [scene_folder], tmp_path / "run", GATHER)
    with pytest.raises(DataError, match=r"there is no checkpoint at nowhere\.pt"):
        train_detector(config(start="nowhere.pt"), [scene_folder], tmp_path / "other", GATHER)


@pytest.mark.parametrize("set_name", ["train", "val"])
def test_photographs_of_both_sets_are_needed(scene_folder, tmp_path, set_name):
    """Without one to validate with, none of the weights would be the best."""
    table = (scene_folder / "labels.tsv").read_text().splitlines()
    (tmp_path / "labels.tsv").write_text(
        "\n".join([table[0], *(line for line in table if line.endswith(f"\t{set_name}"))]) + "\n"
    )
    for name in "abc":
        (tmp_path / f"{name}.png").symlink_to(scene_folder / f"{name}.png")
    missing = {"train": "val", "val": "train"}[set_name]
    with pytest.raises(DataError, match=f"no photograph of the set {missing}"):
        train_detector(replace(config(), steps=1), [tmp_path], tmp_path / "run", GATHER)
