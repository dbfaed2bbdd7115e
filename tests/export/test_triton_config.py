from export.triton_config import triton_config

from serving.manifest import read_manifest
from serving.settings import Settings

SHIPPED = Settings.model_fields["models_dir"].default / "embedder"


def test_the_shipped_config_belongs_to_its_manifest():
    manifest = read_manifest(SHIPPED)
    text = triton_config(manifest)
    assert (SHIPPED / "config.pbtxt").read_text() == text
    assert 'name: "images" data_type: TYPE_UINT8 dims: [ 224, 224, 3 ]' in text
    assert 'name: "embeddings" data_type: TYPE_FP32 dims: [ 512 ]' in text
    assert "max_batch_size: 64" in text
    assert "max_queue_size" in text  # Triton's queue is endless unless it is told
