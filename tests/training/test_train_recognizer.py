"""Training and tuning end to end on words made on the spot: it learns, it can be stopped and goes on the same."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import readleaf
from serving.language import Language
from training.alphabet import PRINTABLE
from training.data.canvas import Canvas
from training.data.fonts import OWN, Font, plainly_written
from training.errors import DataError
from training.evaluate_recognizer import RecognizerFigures, evaluate_recognizer
from training.figures import sha256_of
from training.models.recognizer import RecognizerShape, load_recognizer, published_recognizer, save_recognizer
from training.train_recognizer import RecognizerTraining, train_recognizer
from training.tune_recognizer import PAIRS, RecognizerTuning, tune_recognizer

WORDS = ["leaf", "Oak", "fern", "MOSS", "willow", "bee42", "rose", "Elm"]
SHAPE = RecognizerShape(canvas=Canvas(step=80))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight words to train on, the same in another font to validate."""
    import cv2

    place = tmp_path_factory.mktemp("words")
    rows = ["file\ttext\tsource\tset"]
    for name, set_name in (("DejaVuSans", "train"), ("DejaVuSerif", "val")):
        font = Font(str(OWN / f"{name}.ttf"), PRINTABLE)
        for word in WORDS:
            picture = plainly_written(word, font)
            if word == "willow":  # on its side
                picture = np.ascontiguousarray(np.rot90(picture))
            cv2.imwrite(str(place / f"{name}-{word}.png"), picture)
            rows.append(f"{name}-{word}.png\t{word}\tmade\t{set_name}")
    rows.append("DejaVuSans-leaf.png\tschön\tmade\ttrain")  # cannot be written, is left out
    (place / "labels.tsv").write_text("\n".join(rows) + "\n")
    return place


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where fonts and crops that were looked at are kept, for all tests here."""
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(autouse=True)
def few_fonts(tmp_path, kept, monkeypatch):
    """Fonts that are there on every machine."""
    monkeypatch.setattr("training.data.fonts.FOLDERS", ())
    monkeypatch.setattr("training.kept_files.KEPT", kept)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def starts(tmp_path_factory):
    """A recogniser of each kind to tune, not trained at all."""
    folder = tmp_path_factory.mktemp("starts")
    for prediction in ("ctc", "attention"):
        torch.manual_seed(0)
        model = published_recognizer(replace(SHAPE, prediction=prediction, steps=10))
        save_recognizer(model, folder / f"{prediction}.pt")
    return folder


def config(**changes):
    return RecognizerTraining(
        **{"shape": SHAPE, "steps": 4, "batch": 4, "rate": 1e-5, "validate_every": 2, "synthetic": 0.25, **changes}
    )


def log_of(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def test_it_trains_and_says_what_it_learned_from(folder, tmp_path):
    best = train_recognizer(config(), [folder], tmp_path / "run")
    model = load_recognizer(str(best))
    assert model.provenance.losses == ("ctc",)
    assert model.provenance.data[0].startswith("PP-OCRv6 small")
    assert model.provenance.data[1] == "made: 8 crops"
    assert model.provenance.data[2].startswith("rendered words: ")
    assert [line["step"] for line in log_of(tmp_path / "run")] == [0, 2, 4]
    assert all(line["all/ted"] <= 4 for line in log_of(tmp_path / "run"))
    assert (tmp_path / "run/curves.png").stat().st_size > 1000


def test_a_training_that_was_stopped_goes_on_the_same(folder, tmp_path, monkeypatch):
    train_recognizer(config(), [folder], tmp_path / "whole")
    monkeypatch.setattr("training.train_recognizer.CHECKPOINT_EVERY", 3)
    stopped = config(validate_every=4)
    from training.train_recognizer import _Training

    learn, seen = _Training.learn, []

    def until_the_third(self, batch):
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(1)
        return learn(self, batch)

    monkeypatch.setattr(_Training, "learn", until_the_third)
    with pytest.raises(KeyboardInterrupt):
        train_recognizer(stopped, [folder], tmp_path / "run")
    monkeypatch.setattr(_Training, "learn", learn)
    train_recognizer(stopped, [folder], tmp_path / "run", resume=True)
    whole, resumed = (
        torch.load(tmp_path / name / "checkpoint.pt", weights_only=True)["model"] for name in ("whole", "run")
    )
    for name, value in whole.items():
        torch.testing.assert_close(resumed[name], value, msg=name)


def test_the_thesis_way_starts_from_nothing(folder, tmp_path):
    shape = RecognizerShape(
        "tps", "vgg", "bilstm", "attention", PRINTABLE, feature_channels=32, steps=8, canvas=Canvas(32, 100, channels=1)
    )
    best = train_recognizer(
        config(shape=shape, start="nothing", optimizer="adadelta", rate=1.0), [folder], tmp_path / "run"
    )
    assert load_recognizer(str(best)).shape == shape


@pytest.mark.parametrize(
    ("prediction", "loss", "pairs"),
    [
        ("ctc", "proxy", "local"),
        ("ctc", "feds", "local"),
        *(("ctc", "ls_ed", pairs) for pairs in PAIRS),
        ("attention", "feds", "local"),
        ("attention", "ls_ed", "local_global"),
    ],
)
def test_every_tuning_runs(folder, starts, tmp_path, prediction, loss, pairs):
    start = starts / f"{prediction}.pt"
    tuning = RecognizerTuning(
        str(start),
        loss,
        pairs,
        views=16,
        batch=8,
        first_steps=20,
        rounds=1,
        surrogate_steps=2,
        model_steps=2,
        rate=1e-6,
    )
    best = tune_recognizer(tuning, [folder], tmp_path / "tuned")
    model = load_recognizer(str(best))
    assert model.provenance.losses == (loss,)
    before, after = load_recognizer(str(start)), model
    moved = {
        name.split(".")[0] + "." + name.split(".")[1]
        for name, value in after.state_dict().items()
        if not torch.equal(value, before.state_dict()[name])
    }
    assert moved
    assert "features.stem" not in moved
    assert "features.stages" not in moved
    if loss != "proxy":
        quality = json.loads((tmp_path / "tuned/quality_end.json").read_text())
        assert quality["pairs"] == len(WORDS)
        assert (tmp_path / "tuned/band_early.png").stat().st_size > 1000


def test_arms_of_one_start_share_their_views(folder, starts, tmp_path, monkeypatch):
    tuning = RecognizerTuning(
        str(starts / "ctc.pt"), "proxy", views=8, batch=4, rounds=1, model_steps=1, synthetic=0.0, seed=5
    )
    tune_recognizer(tuning, [folder], tmp_path / "first")
    with monkeypatch.context() as without:
        without.setattr("training.tune_recognizer.make_feed", None)
        tune_recognizer(tuning, [folder], tmp_path / "second")
        with pytest.raises(TypeError):  # other views have to be made
            tune_recognizer(replace(tuning, strength=0.5), [folder], tmp_path / "third")
    first, second = (load_recognizer(str(tmp_path / name / "best.pt")) for name in ("first", "second"))
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_evaluation_scores_and_calibrates(folder, tmp_path):
    figures = evaluate_recognizer(load_recognizer("published"), [folder])
    assert figures.metrics["made/accuracy"] == figures.metrics["all/accuracy"] == 1
    assert figures.metrics["all/ted"] == 0
    assert 0 <= figures.metrics["all/ece"] <= 1
    assert figures.temperature > 0
    figures.write(tmp_path / "metrics.json")
    assert RecognizerFigures.read(tmp_path / "metrics.json") == figures


def test_the_commands(folder, tmp_path):
    run = CliRunner()
    (tmp_path / "config.toml").write_text("steps = 9\nbatch = 4\nsynthetic = 0.0\n[shape.canvas]\nstep = 80\n")
    data = ["--data", str(folder)]
    words = ["train", "recognizer", str(tmp_path / "config.toml"), *data, "--out", "run", "--set", "steps=1"]
    assert run.invoke(readleaf.app, words).exit_code == 0
    answer = run.invoke(readleaf.app, ["evaluate", "recognizer", *data, "--weights", "run/best.pt", "--table", "t.md"])
    assert answer.exit_code == 0, answer.output
    assert "| run/best.pt | 1.0000 |" in (tmp_path / "t.md").read_text()
    assert json.loads((tmp_path / "run/metrics.json").read_text())["metrics"]["all/ted"] == 0
    Language({"leaf": 0.5}, 0.4, 0.1, {}, {}, 1, weight=0.1).write(tmp_path / "language.npz")
    words = ["evaluate", "recognizer", *data, "--weights", "run/best.pt", "--language"]
    assert run.invoke(readleaf.app, [*words, "language.npz"]).exit_code == 0
    figures = json.loads((tmp_path / "run/metrics.json").read_text())
    assert figures["metrics"]["all/accuracy letter by letter"] == 1
    assert figures["language"] == sha256_of("language.npz")
    assert isinstance(run.invoke(readleaf.app, [*words, "nowhere.npz"]).exception, OSError)
    words = ["train", "mix-recognizers", "published", "run/best.pt", "mixed.pt", "--share", "0.3"]
    assert run.invoke(readleaf.app, words).exit_code == 0
    assert load_recognizer("mixed.pt").provenance.losses == ("ctc", "mixed")
    (tmp_path / "tuning.toml").write_text('start = "run/best.pt"\nloss = "proxy"\nviews = 8\nbatch = 4\nrounds = 1\n')
    words = ["train", "tune-recognizer", str(tmp_path / "tuning.toml"), *data, "--out", "tuned"]
    answer = run.invoke(readleaf.app, [*words, "--set", "model_steps=1", "--set", "synthetic=0"])
    assert answer.exit_code == 0, answer.output


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimizer": "luck"}, "optimizer is 'luck'; it must be one of adamw, adadelta"),
        ({"steps": 0}, "steps must be above 0"),
        ({"synthetic": 1.5}, "synthetic must be between 0 and 1"),
    ],
)
def test_impossible_configs_are_named(changes, message):
    with pytest.raises(DataError, match=message):
        config(**changes)
    with pytest.raises(DataError, match="loss is 'hope'"):
        RecognizerTuning("x.pt", loss="hope")
    with pytest.raises(DataError, match="views for a batch"):
        RecognizerTuning("x.pt", views=3)


def test_a_start_of_another_shape_is_refused(folder, tmp_path):
    start = train_recognizer(config(steps=1), [folder], tmp_path / "start")
    with pytest.raises(DataError, match="the config asks for"):
        train_recognizer(config(start=str(start), shape=replace(SHAPE, symbols="abc")), [folder], tmp_path / "run")
    with pytest.raises(DataError, match="no crop of the set train with a word"):
        train_recognizer(config(shape=replace(SHAPE, symbols="#")), [folder], tmp_path / "other")
