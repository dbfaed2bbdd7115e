"""A version is added to a model whole or not at all, and nothing that was there is touched."""

import shutil

import numpy as np
import pytest

from export.repository import new_version, replaced_folder, sha256_of
from serving.manifest import read_manifest
from serving.metrics import Metrics
from serving.repository import load_repository, versions_of
from serving.runtime.in_process import InProcessRuntime
from serving.settings import Settings
from serving.triton_config import triton_config

SHIPPED = Settings.model_fields["models_dir"].default


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def fill(version, **changes):
    """The shipped classifier under the number of this version."""
    shutil.copy(SHIPPED / "classifier/1/model.onnx", version.graph)
    manifest = read_manifest(SHIPPED / "classifier/1")
    changed = manifest.model_copy(update={"version": version.number, "probe": None, **changes})
    return version.describe(changed, "# A card\n")


def test_the_first_version_of_a_new_model(tmp_path):
    with new_version(tmp_path / "deeper/models/classifier") as version:
        assert version.number == 1
        assert not (tmp_path / "deeper/models/classifier").exists()  # nobody sees half a model
        manifest = fill(version)
    model = tmp_path / "deeper/models/classifier"
    assert set(contents(model.parent)) == {
        "classifier/config.pbtxt",
        "classifier/1/model.onnx",
        "classifier/1/manifest.json",
        "classifier/1/CARD.md",
    }
    assert [place.name for place in model.parent.iterdir()] == ["classifier"]
    assert load_repository(model.parent)["classifier"].manifest == manifest
    assert (model / "1/CARD.md").read_text() == "# A card\n"
    assert (model / "config.pbtxt").read_text() == triton_config({1: manifest})


def test_the_next_version_stands_beside_the_others(models):
    before = contents(models / "classifier")
    with new_version(models / "classifier") as version:
        assert version.number == 2
        second = fill(version)
        assert contents(models / "classifier") == before
    after = contents(models / "classifier")
    first = read_manifest(models / "classifier/1")
    assert after.pop("config.pbtxt").decode() == triton_config({1: first, 2: second})
    assert {name for name in after if name.startswith("2/")} == {"2/model.onnx", "2/manifest.json", "2/CARD.md"}
    assert {name: data for name, data in after.items() if name.startswith("1/")} == {
        name: data for name, data in before.items() if name.startswith("1/")
    }
    with new_version(models / "classifier") as version:
        assert version.number == 3
        fill(version)
    assert set(versions_of(models / "classifier").good) == {1, 2, 3}


def test_a_number_is_never_given_twice_while_its_version_is_there(models):
    """A version that is broken, or of which files are missing, is still somebody's."""
    (models / "classifier/7").mkdir()
    with new_version(models / "classifier") as version:
        assert version.number == 8
        manifest = fill(version)
    first = read_manifest(models / "classifier/1")
    assert (models / "classifier/config.pbtxt").read_text() == triton_config({1: first, 8: manifest})


@pytest.mark.parametrize("name", ["classifier", "trees"])
def test_what_fails_leaves_no_trace(models, name):
    before, places = contents(models), sorted(models.iterdir())

    def fail(filled):
        with new_version(models / name) as version:
            if filled:
                fill(version, name=name)
            raise KeyboardInterrupt

    for filled in (False, True):
        with pytest.raises(KeyboardInterrupt):
            fail(filled)
    assert contents(models) == before
    assert sorted(models.iterdir()) == places


def test_what_was_not_described_is_not_added(models):
    before = contents(models)
    with (
        pytest.raises(Exception, match=r"manifest\.json cannot be read"),
        new_version(models / "classifier") as version,
    ):
        shutil.copy(SHIPPED / "classifier/1/model.onnx", version.graph)
    assert contents(models) == before


def test_what_the_graph_answers_is_kept(models):
    with new_version(models / "classifier") as version:
        manifest = fill(version)
    assert manifest.probe is not None
    assert manifest.probe.shape == [192, 192, 3]
    shipped = read_manifest(SHIPPED / "classifier/1").probe
    np.testing.assert_allclose(manifest.probe.answers, shipped.answers, atol=1e-5)  # it is the same graph
    stored = load_repository(models)["classifier"]
    assert stored.manifest == manifest
    InProcessRuntime("cpu", Metrics()).load(stored)


def test_versions_of_the_tests_are_versions(models, add_version):
    """Other tests rest on them: each is a graph of its own that answers as it says."""
    for name in ("embedder", "recognizer"):
        assert add_version(models, name, metrics={"all/accuracy": 0.5}) == 2
        stored = versions_of(models / name)
        assert stored[1].manifest.sha256 != stored[2].manifest.sha256
        assert stored[2].manifest.metrics == {"all/accuracy": 0.5}
        InProcessRuntime("cpu", Metrics()).load(stored[2])


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    folder = tmp_path / "prepared"
    for text in ("first", "second"):
        with replaced_folder(folder) as new:
            (new / f"{text}.txt").write_text(text)
        assert contents(folder) == {f"{text}.txt": text.encode()}

    def fail():
        with replaced_folder(folder) as new:
            (new / "third.txt").write_text("third")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert contents(tmp_path) == {"prepared/second.txt": b"second"}


def test_a_checksum(tmp_path):
    (tmp_path / "nothing").touch()
    assert sha256_of(tmp_path / "nothing") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
