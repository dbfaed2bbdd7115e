import shutil

import pytest

from serving.errors import ManifestInvalid, ModelCorrupt, ModelsMissing
from serving.manifest import RecognizerManifest
from serving.repository import load_repository, manifest_as, model_of
from serving.settings import Settings

SHIPPED = Settings.model_fields["models_dir"].default


@pytest.fixture
def repository(tmp_path):
    return shutil.copytree(SHIPPED, tmp_path / "models")


def test_the_shipped_models_are_whole():
    models = load_repository(SHIPPED)
    assert models["embedder"].manifest.task == "embed"
    assert models["embedder"].file.is_file()
    for model in models.values():
        assert (model.folder / "CARD.md").is_file()
        assert model.file.stat().st_size < 25_000_000


def test_a_changed_byte_is_noticed(repository):
    file = repository / "embedder/1/model.onnx"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(ModelCorrupt, match=r"embedder: .*sha256.*its manifest says"):
        load_repository(repository)


def test_the_language_of_a_recognizer_is_checked(repository):
    file = repository / "recognizer/language.npz"
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
