"""Training end to end on pictures made on the spot: it learns, it can be stopped and goes on the same."""

import json
import shutil

import pytest
import torch
from typer.testing import CliRunner

import readleaf
from training.errors import DataError
from training.models.embedder import EmbedderShape, load_embedder
from training.train_embedder import LOSSES, EmbedderTraining, train_embedder

SMALL = {"size": 32, "test_size": 32, "batch": 12, "per_class": 3, "chunk": 5, "validate_every": 0.5, "rate": 1e-3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, photo):
    """Four classes to train on, two unseen ones; all are shades of one picture each."""
    place = tmp_path_factory.mktemp("pictures")
    rows = ["file\tclass_name\tsource\tset"]
    for number in range(6):
        for shade in range(6):
            name = f"{number}-{shade}.jpg"
            photo(50, 40, seed=number).point(lambda value, shade=shade: value * (1 - 0.1 * shade)).save(place / name)
            rows.append(f"{name}\tkind {number}\tmade\t{'train' if number < 4 else 'val_unseen_class'}")
    (place / "labels.tsv").write_text("\n".join(rows) + "\n")
    return place


def config(**changes):
    return EmbedderTraining(**{**SMALL, "epochs": 1.0, "shape": EmbedderShape(dim=16), **changes})


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_trains(folder, tmp_path, loss):
    best = train_embedder(config(loss=loss), [folder], tmp_path / "run")
    model = load_embedder(str(best))
    assert model.dim == 16
    assert model.provenance.data[1:] == ("made: 24 pictures of 4 classes",)
    assert model.provenance.losses == (loss,)
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2]
    assert all(0 <= line["made/val_unseen_class/r@1"] <= 1 for line in lines)
    assert all(0 <= line["made/val_unseen_class/mAP@R"] <= 1 for line in lines)
    assert list((tmp_path / "run/tensorboard").iterdir())
    assert (tmp_path / "run/curves.png").stat().st_size > 1000


def test_a_folder_for_each_class_is_enough(folder, tmp_path):
    """Nobody said which classes are unseen: the nearest neighbours of `val` in `train` are watched."""
    for file in folder.glob("*.jpg"):
        kind = tmp_path / "mine" / file.name[0]
        kind.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, kind)
    train_embedder(config(), [tmp_path / "mine"], tmp_path / "run")
    last = json.loads((tmp_path / "run/log.jsonl").read_text().splitlines()[-1])
    assert 0 <= last["mine/val/1-nn"] == last["r@1"] <= 1


class Stop(Exception):
    pass


def test_stopped_and_resumed_equals_one_go(folder, tmp_path, monkeypatch):
    settings = config(epochs=2.0, loss="recall_at_k_mixed")
    train_embedder(settings, [folder], tmp_path / "whole")

    from training import train_embedder as module

    learn = module._Training.learn
    steps = []

    def until_the_third(self, *batch):
        if len(steps) == 2:
            raise Stop
        steps.append(1)
        return learn(self, *batch)

    with monkeypatch.context() as patch:
        patch.setattr(module._Training, "learn", until_the_third)
        with pytest.raises(Stop):
            train_embedder(settings, [folder], tmp_path / "parts")
    train_embedder(settings, [folder], tmp_path / "parts", resume=True)
    whole, parts = (
        torch.load(tmp_path / name / "checkpoint.pt", weights_only=True)["model"] for name in ("whole", "parts")
    )
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, rtol=1e-4, atol=1e-5)


def test_it_learns(folder, tmp_path):
    train_embedder(config(epochs=10.0, loss="recall_at_k"), [folder], tmp_path / "run")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "run/tensorboard"))
    events.Reload()
    losses = [event.value for event in events.Scalars("loss")]
    assert len(losses) == 20
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert [line["mean loss"] for line in lines] == pytest.approx(losses, rel=1e-5)
    assert min(losses[-3:]) < losses[0]


def test_folders_are_not_mixed_up(folder, tmp_path):
    train_embedder(config(), [folder], tmp_path / "run")
    with pytest.raises(DataError, match="holds a training already; add --resume"):
        train_embedder(config(), [folder], tmp_path / "run")
    with pytest.raises(DataError, match="begun with another config"):
        train_embedder(config(seed=3), [folder], tmp_path / "run", resume=True)
    with pytest.raises(DataError, match="no training to resume"):
        train_embedder(config(), [folder], tmp_path / "other", resume=True)


def test_it_starts_from_a_checkpoint(folder, tmp_path):
    best = train_embedder(config(), [folder], tmp_path / "first")
    train_embedder(config(start=str(best)), [folder], tmp_path / "second")
    with pytest.raises(DataError, match="the config asks for"):
        train_embedder(config(start=str(best), shape=EmbedderShape(dim=8)), [folder], tmp_path / "third")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "hinge"}, "loss is 'hinge'; it must be one of recall_at_k"),
        ({"epochs": 0.0}, "epochs must be above 0"),
        ({"batch": 5}, "batch must hold two classes of 3 pictures, not 5"),
    ],
)
def test_configs_that_cannot_be(changes, message):
    with pytest.raises(DataError, match=message):
        config(**changes)


def test_rates():
    plain = config(warmup=0.1)
    assert plain.rate_at(0) < plain.rate_at(0.05) < plain.rate_at(0.1) == plain.rate
    assert plain.rate_at(1) == pytest.approx(0, abs=1e-9)
    steps = config(warmup=0.0, milestones=(0.5, 0.8))
    assert [steps.rate_at(share) / steps.rate for share in (0.1, 0.5, 0.9)] == pytest.approx([1, 0.3, 0.09])


def test_the_command(folder, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('loss = "recall_at_k"\nepochs = 9\n')
    arguments = ["train", "embedder", str(file), "--data", str(folder), "--out", str(tmp_path / "run")]
    for key, value in {**SMALL, "epochs": 0.5, "shape.dim": 16}.items():
        arguments += ["--set", f"{key}={value}"]
    answer = CliRunner().invoke(readleaf.app, arguments)
    assert answer.exit_code == 0, answer.output
    assert (tmp_path / "run/best.pt").is_file()
