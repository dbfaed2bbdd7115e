"""A model must prove itself, on whatever runs it, before it answers anybody."""

import hashlib

import numpy as np
import pytest

from serving.errors import ModelRefused
from serving.manifest import Probe, Tensor, read_manifest
from serving.runtime.probe import ALIKE, NUMBERS, TOLERANCE, check_answers, make_probe, probe_numbers, probe_picture
from serving.settings import Settings

SHIPPED = Settings.model_fields["models_dir"].default


@pytest.fixture(scope="module")
def embedder():
    """Of pictures 4 × 6, in vectors of 100 numbers, with no probe yet."""
    manifest = read_manifest(SHIPPED / "embedder/1")
    return manifest.model_copy(
        update={
            "inputs": [Tensor(name="images", dtype="uint8", shape=[-1, 4, 6, 3])],
            "outputs": [Tensor(name="embeddings", dtype="float32", shape=[-1, 100])],
            "probe": None,
        }
    )


def answers(change=lambda rows: rows):
    """A model whose answer is a ramp times what is in the picture; `change` spoils it."""

    def run(inputs):
        pictures = inputs["images"].astype(np.float32)
        assert inputs["images"].dtype == np.uint8
        means = pictures.mean(axis=(1, 2, 3)) / 255
        return {"embeddings": change(means[:, None] * np.linspace(-1, 1, 100, dtype=np.float32))}

    return run


def described(manifest, run):
    return manifest.model_copy(update={"probe": make_probe(manifest, run)})


def test_every_machine_draws_the_same_picture():
    picture = probe_picture((40, 70, 3))
    assert (picture.shape, picture.dtype) == ((40, 70, 3), np.uint8)
    assert hashlib.sha256(picture.tobytes()).hexdigest().startswith("19be6218efa7c000")
    assert picture.min() == 20
    assert picture.max() > 240
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 100


def test_a_probe_is_kept_in_the_manifest(embedder):
    probe = make_probe(embedder, answers())
    assert probe.shape == [4, 6, 3]
    assert len(probe.answers) == NUMBERS
    mean = probe_picture((4, 6, 3)).mean() / 255
    assert probe.answers[0] == pytest.approx(-mean, abs=1e-6)  # the first and the last number are among them
    assert probe.answers[-1] == pytest.approx(mean, abs=1e-6)
    check_answers(described(embedder, answers()), answers())


def test_of_a_detector_hearts_alone_are_compared():
    manifest = read_manifest(SHIPPED / "detector/1")
    maps = np.random.default_rng(0).random((1, 5, 4, 7)).astype(np.float32)
    np.testing.assert_array_equal(probe_numbers(manifest, {"maps": maps}), maps[0, ..., 0].ravel())


def test_of_a_recognizer_probabilities_are_compared():
    manifest = read_manifest(SHIPPED / "recognizer/1")
    outputs = {"classes": np.ones((1, 3, 8), np.int64), "probabilities": np.full((1, 3, 8), 0.5, np.float32)}
    np.testing.assert_array_equal(probe_numbers(manifest, outputs), np.full(24, 0.5))


@pytest.mark.parametrize(("off", "right"), [(0.9 * TOLERANCE, True), (1.1 * TOLERANCE, False), (np.nan, False)])
def test_answers_are_those_of_the_export(embedder, off, right):
    manifest = described(embedder, answers())
    elsewhere = answers(lambda rows: rows + np.float32(off))
    if right:
        check_answers(manifest, elsewhere)
    else:
        with pytest.raises(ModelRefused, match=r"embedder version 1: "):
            check_answers(manifest, elsewhere)


def test_a_probe_that_does_not_fit(embedder):
    manifest = embedder.model_copy(update={"probe": Probe(shape=[4, 6, 3], answers=[0.0])})
    with pytest.raises(ModelRefused, match=r"answers otherwise than at its export, by inf; at most 1e-03 is allowed"):
        check_answers(manifest, answers())


def test_the_picture_is_that_of_the_export(embedder):
    """Another example shape makes no other picture: the probe says of which one it tells."""
    manifest = described(embedder, answers())
    free = manifest.model_copy(update={"inputs": [Tensor(name="images", dtype="uint8", shape=[-1, 8, 8, 3])]})
    check_answers(free, answers())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:, :99], r"embeddings came as \[1, 99\], its manifest says \[-1, 100\]"),
        (lambda rows: rows[..., None], r"embeddings came as \[1, 100, 1\], its manifest says \[-1, 100\]"),
        (lambda rows: rows / np.float32(0), "embeddings holds what is no number"),
        (lambda rows: np.where(np.arange(100) == 7, np.float32(np.nan), rows), "embeddings holds what is no number"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_cannot_be_an_answer(embedder, change, message):
    with pytest.raises(ModelRefused, match="embedder version 1: " + message):
        check_answers(embedder, answers(change))


def test_a_pictures_answer_depends_on_no_other_picture(embedder):
    with pytest.raises(ModelRefused, match=r"differs by .* if another picture is run with it"):
        check_answers(embedder, answers(lambda rows: rows - rows.mean(axis=0)))
    check_answers(embedder, answers(lambda rows: rows + np.float32(0.9 * ALIKE) * (len(rows) - 1)))


def test_a_model_of_single_pictures_is_asked_for_one(embedder):
    def run(inputs):
        assert len(inputs["images"]) == 1
        return answers()(inputs)

    check_answers(embedder.model_copy(update={"max_batch": 1}), run)
