"""What a model expects to see, and what is seen where it is used: probabilities for another mix of classes.

A weight says how many times as often a class is met as it was in training. Posteriors times weights, made to sum to 1
again, are the posteriors there (Bayes). Weights that nobody knows can be estimated from pictures without labels.
"""

import json
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from serving.errors import PriorInvalid

Floats = NDArray[np.floating]
LARGEST = 1e9  # of weights; the smallest is as far below 1
NAMED = 5  # labels that an error names


def parse_prior(text: str, labels: Sequence[str]) -> dict[str, float]:
    """Weights from JSON; raises PriorInvalid naming what is wrong."""
    try:
        weights = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PriorInvalid(f'the prior is not JSON; send label → weight, such as {{"{labels[0]}": 2}}') from error
    if not isinstance(weights, dict) or not weights:
        raise PriorInvalid(f'the prior must be a JSON object label → weight, such as {{"{labels[0]}": 2}}')
    return check_prior(weights, labels)


def check_prior(weights: Mapping[str, object], labels: Sequence[str]) -> dict[str, float]:
    """Weights of known labels, each a number above 0; raises PriorInvalid otherwise."""
    known = set(labels)
    unknown = [label for label in weights if label not in known]
    if unknown:
        some = ", ".join(f"{label!r:.60}" for label in unknown[:NAMED])
        raise PriorInvalid(f"the model has no label {some}; its card and GET /v1/models list all {len(known)}")
    checked = {}
    for label, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 1 / LARGEST <= weight <= LARGEST:
            raise PriorInvalid(
                f"the weight of {label!r} is {weight!r:.40}; it must be a number above 0, "
                f"{1 / LARGEST:g} to {LARGEST:g}: 1 as in training, 2 twice as often; "
                "leave out labels that you know nothing about"
            )
        checked[label] = float(weight)
    return checked


def reweigh(posteriors: Floats, weights: Floats) -> Floats:
    """Posteriors [N, K] where class k is met weights[k] times as often: p · w, made to sum to 1 by row."""
    weighted = posteriors * weights
    return np.asarray(weighted / np.maximum(weighted.sum(axis=-1, keepdims=True), 1e-300))


def estimate_weights(
    posteriors: Floats, prior: Floats, *, belief: float | None = None, steps: int = 1000, tolerance: float = 1e-9
) -> Floats:
    """Weights [K] that unlabelled rows [N, K] speak for, by expectation maximisation (Saerens et al.).

    Each step reweighs the posteriors with the current estimate of the classes' shares and takes their mean as the next
    one. `prior` are the shares in training; they count for as many rows as `belief` says, so that a class that is not
    among few rows is thought rare, not impossible. By default that is a row a class; with 0 it is the estimator as
    published, which on many classes makes too much of mistakes.
    """
    belief = float(len(prior)) if belief is None else belief
    shares = prior = prior / prior.sum()
    for _ in range(steps):
        seen = reweigh(posteriors, shares / prior).sum(axis=0)
        following = (seen + belief * prior) / (len(posteriors) + belief)
        settled = np.abs(following - shares).max() < tolerance
        shares = following
        if settled:
            break
    return np.asarray(shares / prior)
