import json

import numpy as np
import pytest

from serving.errors import PriorInvalid
from serving.pipelines.priors import estimate_weights, parse_prior, reweigh

LABELS = ["ash", "elm", "oak"]


def test_reweighing_is_bayes_rule():
    old, new = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    likelihood = np.array([[0.2, 0.6]])
    posterior = likelihood * old / (likelihood * old).sum()
    expected = likelihood * new / (likelihood * new).sum()
    np.testing.assert_allclose(reweigh(posterior, new / old), expected)


def test_weights_that_leave_nothing_give_no_nan():
    assert np.isfinite(reweigh(np.array([[1.0, 0.0]]), np.array([0.0, 1.0]))).all()


def drawn(shares, count, seed):
    """Posteriors under equal priors of unit Gaussians at 2·e_k, and what they were drawn from."""
    random = np.random.default_rng(seed)
    labels = random.choice(3, count, p=shares)
    powers = np.exp(2 * (np.eye(3)[labels] * 2 + random.normal(size=(count, 3))))
    return powers / powers.sum(axis=1, keepdims=True), labels


@pytest.mark.parametrize("belief", [0.0, None])
def test_the_mix_of_unlabelled_pictures_is_found(belief):
    shares = np.array([0.7, 0.2, 0.1])
    posteriors, _ = drawn(shares, 20_000, 2)
    weights = estimate_weights(posteriors, np.full(3, 1 / 3), belief=belief)
    np.testing.assert_allclose(weights / 3, shares, atol=0.02)


def test_the_estimate_helps():
    posteriors, labels = drawn(np.array([0.9, 0.08, 0.02]), 500, 3)
    before = (posteriors.argmax(axis=1) == labels).mean()
    after = (reweigh(posteriors, estimate_weights(posteriors, np.full(3, 1 / 3))).argmax(axis=1) == labels).mean()
    assert after > before + 0.02


def test_few_pictures_make_no_class_impossible():
    posteriors = np.array([[0.98, 0.01, 0.01]] * 3)
    published = estimate_weights(posteriors, np.full(3, 1 / 3), belief=0.0)
    careful = estimate_weights(posteriors, np.full(3, 1 / 3))
    assert published[1] < 1e-3 < 0.3 < careful[1] < 1 < careful[0]


def test_a_prior():
    assert parse_prior('{"oak": 2, "ash": 0.5}', LABELS) == {"oak": 2.0, "ash": 0.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("oak", 'not JSON; send label → weight, such as {"ash": 2}'),
        ("[1, 2]", "must be a JSON object label → weight"),
        ("{}", "must be a JSON object label → weight"),
        ("[" * 100_000, "not JSON"),
        ('{"Oak": 1}', "the model has no label 'Oak'; its card and GET /v1/models list all 3"),
        (json.dumps({f"kind {n}": 1 for n in range(50)}), "no label 'kind 0', 'kind 1', 'kind 2', 'kind 3', 'kind 4';"),
        ('{"oak": 0}', "the weight of 'oak' is 0; it must be a number above 0"),
        ('{"oak": 1e-310}', "the weight of 'oak' is 1e-310"),
        ('{"' + "x" * 9999 + '": 1}', "the model has no label 'xxx"),
        ('{"oak": -1}', "the weight of 'oak' is -1"),
        ('{"oak": "2"}', "the weight of 'oak' is '2'"),
        ('{"oak": true}', "the weight of 'oak' is True"),
        ('{"oak": null}', "the weight of 'oak' is None"),
        ('{"oak": NaN}', "the weight of 'oak' is nan"),
        ('{"oak": Infinity}', "the weight of 'oak' is inf"),
        ('{"oak": 1' + "0" * 400 + "}", "the weight of 'oak' is 1000"),
    ],
)
def test_priors_that_cannot_be(text, message):
    with pytest.raises(PriorInvalid) as caught:
        parse_prior(text, LABELS)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500
