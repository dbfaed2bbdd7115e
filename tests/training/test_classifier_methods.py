import pytest
import torch
from torch.nn import functional as F

from training.classifier_methods import METHODS, class_means, learn_on_finished, new_projection
from training.losses import esupcon, spce, supcon
from training.models.classifier import Classifier, ClassifierShape

LABELS = torch.tensor([0, 1, 2, 0, 1, 2])


@pytest.fixture
def rows():
    torch.manual_seed(0)
    return torch.rand(6, 1280, requires_grad=True)


def model_for(method):
    torch.manual_seed(1)
    model = Classifier(ClassifierShape(), ("ash", "elm", "oak"), cosine=METHODS[method].cosine)
    torch.nn.init.normal_(model.weights)
    return model


@pytest.mark.parametrize("method", METHODS)
def test_who_learns_from_which_loss(method, rows):
    known, model = METHODS[method], model_for(method)
    projection = new_projection(known, 1280)
    known.loss(model, projection, rows, LABELS, 0.1).backward()
    assert rows.grad.abs().sum() > 0
    jointly = method in ("ce", "esupcon", "supcon_tt", "spce", "spce_m")
    assert (model.weights.grad is not None and model.weights.grad.abs().sum() > 0) == jointly
    assert bool(list(projection.parameters())) == known.projects == method.startswith("supcon")
    if known.projects:
        assert projection[0].weight.grad.abs().sum() > 0


def test_the_losses_are_those_of_the_thesis(rows):
    units, temperature = F.normalize(rows, dim=1), 0.2
    model = model_for("esupcon")
    value = METHODS["esupcon"].loss(model, torch.nn.Identity(), rows, LABELS, temperature)
    torch.testing.assert_close(value, esupcon(units, LABELS, model.weights, temperature))
    directions = F.normalize(model.weights, dim=1)
    tight = -(units * directions[LABELS]).sum(dim=1).mean()
    value = METHODS["spce"].loss(model, torch.nn.Identity(), rows, LABELS, temperature)
    torch.testing.assert_close(value, spce(units, LABELS, 3) + tight)
    projection = new_projection(METHODS["supcon_tt"], 1280)
    value = METHODS["supcon_tt"].loss(model, projection, rows, LABELS, temperature)
    contrasted = supcon(F.normalize(projection(rows), dim=1), LABELS, temperature)
    torch.testing.assert_close(value, contrasted + tight)
    linear = model_for("ce")
    value = METHODS["ce"].loss(linear, torch.nn.Identity(), rows, LABELS, temperature)
    torch.testing.assert_close(value, F.cross_entropy(rows @ linear.weights.T + linear.bias, LABELS))


def test_tightness_moves_prototypes_alone(rows):
    model = model_for("spce")
    METHODS["spce"].loss(model, torch.nn.Identity(), rows, LABELS, 0.1).backward()
    whole = rows.grad.clone()
    rows.grad = None
    spce(F.normalize(rows, dim=1), LABELS, 3).backward()
    torch.testing.assert_close(rows.grad, whole)


def test_means_of_classes():
    units = F.normalize(torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]), dim=1)
    means = class_means(units, torch.tensor([0, 0, 1]), 3)
    torch.testing.assert_close(means[:2], torch.tensor([[0.5**0.5, 0.5**0.5, 0], [0, 0, 1.0]]))
    assert means[2].norm() > 0  # a direction, though nothing is known of the class


@pytest.mark.parametrize("method", ["supcon_ce", "supcon_ce_n", "spce_m"])
def test_what_comes_afterwards_learns_separable_rows(method):
    torch.manual_seed(0)
    model = model_for(method)
    labels = torch.arange(3).repeat(20)
    rows = 3 * torch.eye(1280)[labels] + 0.05 * torch.rand(60, 1280)
    learn_on_finished(model, METHODS[method], rows, labels, steps=200, batch=32, rate=1e-1)
    assert (model.scores(rows).argmax(dim=1) == labels).all()


@pytest.mark.parametrize("method", ["ce", "esupcon", "supcon_tt", "spce"])
def test_the_others_are_left_as_they_are(method, rows):
    model = model_for(method)
    before = model.weights.detach().clone()
    learn_on_finished(model, METHODS[method], rows.detach(), LABELS, steps=5, batch=4, rate=1e-2)
    torch.testing.assert_close(model.weights.detach(), before)
