import pytest
import torch

from training.errors import DataError
from training.models.classifier import (
    Classifier,
    ClassifierShape,
    imagenet_classifier,
    load_classifier,
    save_classifier,
)
from training.models.provenance import Provenance

CLASSES = ("ash", "elm", "oak")


@pytest.fixture(scope="module", params=[True, False], ids=["cosine", "linear"])
def model(request):
    torch.manual_seed(0)
    made = imagenet_classifier(ClassifierShape(), CLASSES, cosine=request.param)
    torch.nn.init.normal_(made.weights, std=0.1)
    torch.nn.init.normal_(made.bias)
    return made


def test_the_parts_of_a_heat_map_sum_to_the_score(model):
    images = torch.rand(2, 3, 96, 64) * 2 - 1
    with torch.no_grad():
        scores, parts = model.explained(images)
        torch.testing.assert_close(scores, model(images), rtol=1e-4, atol=1e-4)
    assert parts.shape == (2, 3, 2, 3)
    torch.testing.assert_close(parts.sum(dim=(1, 2)), scores, rtol=1e-3, atol=1e-3)


def test_scores_of_a_cosine_classifier_know_no_lengths():
    model = Classifier(ClassifierShape(), CLASSES, cosine=True)
    rows = torch.rand(4, model.body.dim)
    before = model.scores(rows)
    assert before.abs().max() <= 10 + 1e-4
    model.weights.data *= torch.tensor([[2.0], [0.1], [7.0]])
    torch.testing.assert_close(model.scores(rows * 5), before)


def test_a_checkpoint_is_the_same_model(model, tmp_path):
    model.provenance = Provenance(("made: 3 pictures",), ("esupcon",))
    save_classifier(model, tmp_path / "run/best.pt")
    loaded = load_classifier(str(tmp_path / "run/best.pt"))
    assert (loaded.classes, loaded.cosine, loaded.provenance) == (CLASSES, model.cosine, model.provenance)
    images = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(loaded(images), model(images))


def test_checkpoints_that_are_none(tmp_path):
    with pytest.raises(DataError, match="there is no checkpoint at"):
        load_classifier(str(tmp_path / "nowhere.pt"))
    (tmp_path / "letter.pt").write_text("Dear all,")
    with pytest.raises(DataError, match="is not a checkpoint of a classifier"):
        load_classifier(str(tmp_path / "letter.pt"))


def test_a_heat_map_needs_places():
    with pytest.raises(DataError, match="backbone is 'vit_b16'; it must be one of lite0"):
        ClassifierShape(backbone="vit_b16")
