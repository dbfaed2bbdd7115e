import json
import shutil

import pytest
import structlog

from serving.errors import ManifestInvalid, ModelCorrupt, ModelsMissing
from serving.manifest import RecognizerManifest
from serving.repository import find_versions, load_repository, manifest_as, model_of, version_numbers, versions_of
from serving.settings import Settings

SHIPPED = Settings.model_fields["models_dir"].default


@pytest.fixture
def repository(tmp_path):
    return shutil.copytree(SHIPPED, tmp_path / "models")


@pytest.fixture
def two(repository):
    """A repository with two versions of the classifier, alike but for their numbers."""
    copy_version(repository / "classifier", 2)
    return repository


def copy_version(model, number):
    folder = shutil.copytree(model / "1", model / str(number))
    manifest = json.loads((folder / "manifest.json").read_text()) | {"version": number}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def damage(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def test_the_shipped_models_are_whole():
    models = load_repository(SHIPPED)
    assert models["embedder"].manifest.task == "embed"
    assert models["embedder"].file.is_file()
    for name, model in models.items():
        assert model.folder == SHIPPED / name / "1"
        assert (model.folder / "CARD.md").is_file()
        assert model.file.stat().st_size < 25_000_000


def test_a_changed_byte_is_noticed(repository):
    damage(repository / "embedder/1/model.onnx")
    with pytest.raises(ModelCorrupt, match=r"embedder: .*sha256.*its manifest says"):
        load_repository(repository)


def test_the_language_of_a_recognizer_is_checked(repository):
    file = repository / "recognizer/1/language.npz"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ModelCorrupt, match=r"recognizer: .*language\.npz has sha256"):
        load_repository(repository)
    file.unlink()
    with pytest.raises(ModelsMissing, match=r"language\.npz is missing"):
        load_repository(repository)


def test_missing_folder_graph_and_models(repository, tmp_path):
    with pytest.raises(ModelsMissing, match=r"no model folder at .*nowhere.*READLEAF_MODELS_DIR"):
        load_repository(tmp_path / "nowhere")
    (repository / "embedder/1/model.onnx").unlink()
    with pytest.raises(ModelsMissing, match=r"model\.onnx is missing"):
        load_repository(repository)
    for model in repository.iterdir():
        shutil.rmtree(model)
    with pytest.raises(ModelsMissing, match="holds no model"):
        load_repository(repository)


def test_a_version_that_cannot_be_read_spoils_no_other(repository):
    shutil.copytree(repository / "classifier/1", repository / "classifier/2")
    text = (repository / "classifier/2/manifest.json").read_text()
    (repository / "classifier/2/manifest.json").write_text(text.replace('"version": 1', '"version": 2', 1))
    (repository / "classifier/2/model.onnx").unlink()
    (repository / "classifier/2/model.onnx").symlink_to("/proc/self/mem")  # may be opened, and not read
    assert load_repository(repository, {"classifier": 1})["classifier"].manifest.version == 1
    with pytest.raises(ModelCorrupt, match=r"classifier: .*cannot be read"):
        load_repository(repository)


def test_hidden_folders_are_no_models(repository):
    (repository / ".embedder-half-written").mkdir()
    assert set(load_repository(repository)) == {"classifier", "detector", "embedder", "recognizer"}


def test_a_model_that_the_service_needs(repository):
    models = load_repository(repository)
    assert manifest_as(model_of(models, "recognizer"), RecognizerManifest) is models["recognizer"].manifest
    with pytest.raises(ManifestInvalid, match="its task is embed"):
        manifest_as(model_of(models, "embedder"), RecognizerManifest)
    del models["detector"]
    with pytest.raises(ModelsMissing, match="no model named detector"):
        model_of(models, "detector")


def test_the_newest_version_unless_another_is_chosen(two):
    def version(chosen):
        model = load_repository(two, chosen)["classifier"]
        assert model.folder == two / "classifier" / str(model.manifest.version)
        return model.manifest.version

    assert version(None) == version({}) == version({"embedder": 1}) == 2
    assert version({"classifier": 1}) == 1
    assert version({"classifier": 2, "gone": 7}) == 2


def test_numbers_are_no_words(repository):
    """Version 10 is newer than version 9."""
    for number in (9, 10):
        copy_version(repository / "classifier", number)
    assert load_repository(repository)["classifier"].manifest.version == 10
    assert version_numbers(repository / "classifier") == [1, 9, 10]


def test_a_chosen_version_that_is_gone(two):
    shutil.rmtree(two / "classifier/1")
    with structlog.testing.capture_logs() as log:
        assert load_repository(two, {"classifier": 1})["classifier"].manifest.version == 2
    [warning] = log
    assert warning == {
        "log_level": "warning",
        "event": "the version in use is gone",
        "model": "classifier",
        "version": 1,
        "instead": 2,
    }


def test_a_broken_version_beside_the_one_in_use_does_no_harm(two):
    damage(two / "classifier/2/model.onnx")
    with structlog.testing.capture_logs() as log:
        assert load_repository(two, {"classifier": 1})["classifier"].manifest.version == 1
    [warning] = log
    assert (warning["event"], warning["model"], warning["version"]) == (
        "a version that cannot be used",
        "classifier",
        2,
    )
    assert "its manifest says" in warning["reason"]


@pytest.mark.parametrize("chosen", [None, {"classifier": 2}])
def test_the_version_that_is_to_be_used_must_be_whole(two, chosen):
    """Another one in its place would change answers without a word."""
    damage(two / "classifier/2/model.onnx")
    with pytest.raises(ModelCorrupt, match=r"classifier: .*/2/model\.onnx has sha256"):
        load_repository(two, chosen)


def test_versions_whole_and_broken(two):
    damage(two / "classifier/1/model.onnx")
    versions = versions_of(two / "classifier")
    assert versions.name == "classifier"
    assert (set(versions.good), set(versions.broken), versions.newest) == ({2}, {1}, 2)
    assert versions[2].manifest.version == 2
    with pytest.raises(ModelCorrupt, match="export the model again"):
        versions[1]
    with pytest.raises(ModelsMissing, match=r"classifier has no version 3; there is 2$"):
        versions[3]
    damage(two / "classifier/2/model.onnx")
    with pytest.raises(ModelsMissing, match="classifier has no version 3; there is none that is whole"):
        versions_of(two / "classifier")[3]


def test_the_newest_counts_though_it_is_broken(two):
    (two / "classifier/2/manifest.json").unlink()
    versions = versions_of(two / "classifier")
    assert versions.newest == 2
    with pytest.raises(ManifestInvalid, match="cannot be read"):
        versions[2]
    assert version_numbers(two / "classifier") == [1]


def test_a_version_that_says_it_is_another(repository):
    shutil.copytree(repository / "classifier/1", repository / "classifier/2")
    with pytest.raises(ManifestInvalid, match="describes version 1 of 'classifier', but lies in classifier/2"):
        versions_of(repository / "classifier")[2]


def test_all_versions_of_all_models(two):
    found = find_versions(two)
    assert {name: sorted(versions.good) for name, versions in found.items()} == {
        "classifier": [1, 2],
        "detector": [1],
        "embedder": [1],
        "recognizer": [1],
    }
    assert not any(versions.broken for versions in found.values())


def test_a_model_without_versions(repository):
    (repository / "classifier/1").rename(repository / "classifier/first")
    with pytest.raises(
        ManifestInvalid, match="classifier holds no version of a model; each lies in a folder of its own"
    ):
        versions_of(repository / "classifier")
    assert version_numbers(repository / "classifier") == []
    assert version_numbers(repository / "nowhere") == []
