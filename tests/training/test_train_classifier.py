"""Training end to end on pictures made on the spot: every method learns, can be stopped, and goes on the same."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import readleaf
from training.classifier_methods import METHODS
from training.config import read_config
from training.data.hard_settings import HardSetting
from training.errors import DataError
from training.models.classifier import ClassifierShape, load_classifier
from training.train_classifier import ClassifierTraining, train_classifier

SMALL = {"size": 32, "test_size": 32, "batch": 8, "frozen_stages": 5, "rate": 1e-3, "head_rate": 1e-2}
CONFIGS = Path(__file__).parents[2] / "training/configs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, photo):
    """Four kinds, shades of one picture each."""
    place = tmp_path_factory.mktemp("pictures") / "made"
    for number in range(4):
        (place / f"kind {number}").mkdir(parents=True)
        for shade in range(10):
            shaded = photo(50, 40, seed=number).point(lambda value, shade=shade: value * (1 - 0.05 * shade))
            shaded.save(place / f"kind {number}" / f"{shade}.jpg")
    return place


@pytest.fixture(autouse=True)
def kept_here(tmp_path, monkeypatch):
    monkeypatch.setattr("training.kept_files.KEPT", tmp_path / "prepared")


def config(**changes):
    return ClassifierTraining(**{**SMALL, "epochs": 2.0, **changes})


def log_of(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("kept_views", [0, 3])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains(folder, tmp_path, method, kept_views):
    best = train_classifier(config(method=method, kept_views=kept_views), [folder], tmp_path / "run")
    model = load_classifier(str(best))
    assert model.classes == tuple(f"kind {number}" for number in range(4))
    assert model.cosine == (method not in ("ce", "supcon_ce"))
    assert model.provenance.data[1:] == ("made: 32 pictures of 4 classes",)
    assert model.provenance.losses == (method,)
    afterwards = METHODS[method].afterwards != "nothing"
    assert [line["step"] for line in log_of(tmp_path / "run")] == [4, 8] + [9] * afterwards
    lines = log_of(tmp_path / "run")
    assert 0 <= lines[-1]["val/accuracy"] <= 1
    # A classifier that is learned afterwards cannot be judged before.
    assert ("val/accuracy" in lines[0]) == (METHODS[method].afterwards != "cross-entropy")


@pytest.mark.parametrize("method", ["ce", "esupcon"])
def test_it_learns(folder, tmp_path, method):
    train_classifier(config(method=method, epochs=10.0, kept_views=4), [folder], tmp_path / "run")
    lines = log_of(tmp_path / "run")
    assert lines[-1]["mean loss"] < lines[0]["mean loss"]
    assert lines[-1]["val/accuracy"] >= 0.75


def test_a_classifier_on_a_backbone_that_another_method_trained(folder, tmp_path):
    first = train_classifier(config(method="supcon_tt", kept_views=3), [folder], tmp_path / "first")
    second = train_classifier(
        config(method="supcon_ce", start=str(first), epochs=0.0, kept_views=3), [folder], tmp_path / "second"
    )
    one, other = load_classifier(str(first)), load_classifier(str(second))
    torch.testing.assert_close(other.body.state_dict(), one.body.state_dict())
    assert (one.cosine, other.cosine) == (True, False)
    assert other.provenance.losses == ("supcon_tt", "supcon_ce")
    changed = config(start=str(first), shape=ClassifierShape(backbone="lite2"))
    with pytest.raises(DataError, match="has the shape"):
        train_classifier(changed, [folder], tmp_path / "third")


class Stop(Exception):
    pass


@pytest.mark.parametrize(
    ("method", "kept_views"), [("supcon_tt", 0), ("supcon_tt", 3), ("esupcon", 3), ("ce", 3), ("supcon_ce_n", 3)]
)
def test_stopped_and_resumed_equals_one_go(folder, tmp_path, monkeypatch, method, kept_views):
    from training import train_classifier as module

    settings = config(method=method, kept_views=kept_views, patience=7)
    train_classifier(settings, [folder], tmp_path / "whole")
    learn, steps = module._Training.learn, []

    def until_the_sixth(self, *batch):
        if len(steps) == 5:
            raise Stop
        steps.append(1)
        return learn(self, *batch)

    with monkeypatch.context() as patch:
        patch.setattr(module._Training, "learn", until_the_sixth)
        with pytest.raises(Stop):
            train_classifier(settings, [folder], tmp_path / "parts")
    train_classifier(settings, [folder], tmp_path / "parts", resume=True)
    whole, parts = (torch.load(tmp_path / name / "checkpoint.pt", weights_only=True) for name in ("whole", "parts"))
    assert whole["progress"]["step"] == parts["progress"]["step"] == 8
    assert whole["progress"]["since_best"] == parts["progress"]["since_best"]
    kept = (load_classifier(str(tmp_path / name / "best.pt")).weights for name in ("whole", "parts"))
    torch.testing.assert_close(*kept, rtol=1e-3, atol=1e-4)
    for name, value in whole["model"].items():
        torch.testing.assert_close(parts["model"][name], value, rtol=1e-4, atol=1e-5)


def test_it_does_not_go_on_with_other_data(folder, tmp_path, kinds):
    from shutil import copytree

    mine = copytree(folder, tmp_path / "mine")
    train_classifier(config(kept_views=2), [mine], tmp_path / "run")
    kinds(0, 0).save(mine / "kind 0/new.jpg")
    with pytest.raises(DataError, match="was begun with other data; start anew"):
        train_classifier(config(kept_views=2), [mine], tmp_path / "run", resume=True)


def test_a_checkpoint_of_another_version(folder, tmp_path):
    train_classifier(config(kept_views=2), [folder], tmp_path / "run")
    torch.save({"model": {}}, tmp_path / "run/checkpoint.pt")
    with pytest.raises(DataError, match="begun by another version of Readleaf"):
        train_classifier(config(kept_views=2), [folder], tmp_path / "run", resume=True)


def test_a_small_set_is_not_given_up_early(folder, tmp_path):
    settings = config(epochs=50.0, least_steps=30, kept_views=2, patience=1, rate=1e-9, head_rate=1e-9)
    train_classifier(settings, [folder], tmp_path / "run")
    assert log_of(tmp_path / "run")[-1]["step"] == 32  # the first validation after the thirtieth step


def test_it_stops_where_nothing_is_gained(folder, tmp_path):
    settings = config(epochs=50.0, kept_views=2, patience=2, rate=1e-9, head_rate=1e-9)
    train_classifier(settings, [folder], tmp_path / "run")
    assert len(log_of(tmp_path / "run")) == 3  # the first is the best


@pytest.mark.parametrize(("keep", "expected"), [("best", [0.5, 0.6, 0.6]), ("last", [0.5, 0.4, 0.6, 0.6, 0.5])])
def test_which_weights_are_kept(folder, tmp_path, monkeypatch, keep, expected):
    """The best; of two that are as good, the one that learned longer. Or simply the last."""
    from training import train_classifier as module

    coming, seen, saved = [0.5, 0.4, 0.6, 0.6, 0.5], [], []
    monkeypatch.setattr(module, "top_k_accuracy", lambda *_: seen.append(coming[len(seen)]) or seen[-1])
    monkeypatch.setattr(module, "save_classifier", lambda model, file: saved.append(seen[-1]))
    train_classifier(config(epochs=5.0, kept_views=2, keep=keep), [folder], tmp_path / "run")
    assert saved == expected


def test_a_small_set_is_gone_through_more_often(folder, tmp_path):
    settings = config(epochs=1.0, least_steps=7, kept_views=2, setting=HardSetting(few=2))
    best = train_classifier(settings, [folder], tmp_path / "run")
    assert log_of(tmp_path / "run")[-1]["step"] == 7
    assert load_classifier(str(best)).provenance.data[-1] == "made: 8 pictures of 4 classes"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "hinge"}, "method is 'hinge'; it must be one of ce, supcon_ce"),
        ({"epochs": 0.0}, "esupcon learns nothing in 0 epochs"),
        ({"kept_views": 1}, "kept_views must be 2 or more"),
        ({"kept_views": 4, "frozen_stages": 0}, "needs frozen_stages"),
        ({"temperature": 0.0}, "temperature must be above 0"),
        ({"patience": -1}, "patience must be 0 or more"),
        ({"seed": -1}, "seed must be 0 or more"),
        ({"smallest_part": 1.5}, "smallest_part must be above 0 and at most 1"),
        ({"warmup": 1.0}, "warmup must be above 0 and at most 0.9"),
    ],
)
def test_configs_that_cannot_be(changes, message):
    with pytest.raises(DataError, match=message):
        config(**changes)


def test_the_thesis_network_learns_a_few_steps(folder, tmp_path, monkeypatch):
    """ResNet-50, nothing frozen; without the weights of the hub."""
    from training import train_classifier as module
    from training.models.classifier import Classifier

    monkeypatch.setattr(module, "imagenet_classifier", Classifier)
    changes = {"epochs": "0.25", "size": "32", "test_size": "32", "batch": "8", "validate_every": "1"}
    settings = read_config(ClassifierTraining, CONFIGS / "classifier_thesis.toml", changes)
    best = train_classifier(settings, [folder], tmp_path / "run")
    model = load_classifier(str(best))
    assert model.shape.backbone == "resnet50"
    assert model.body.dim == 2048


def test_the_command(folder, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('method = "esupcon"\nepochs = 9\n')
    arguments = ["train", "classifier", str(file), "--data", str(folder), "--out", str(tmp_path / "run")]
    for key, value in {**SMALL, "epochs": 0.5}.items():
        arguments += ["--set", f"{key}={value}"]
    answer = CliRunner().invoke(readleaf.app, arguments)
    assert answer.exit_code == 0, answer.output
    assert (tmp_path / "run/best.pt").is_file()
