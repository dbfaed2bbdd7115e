import numpy as np
import pytest

from export.evaluate_classifier import accuracies, calibrated, prior_shift, sureness, threshold
from training.data.labelled import LabelledFile
from training.metrics.classification import reliability, softmax


def answers(count=4000, classes=6, seed=0):
    """Scores whose soft-max is right as often as it says, and labels."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(count, classes)) * random.uniform(0.5, 4, size=(count, 1))
    labels = np.array([random.choice(classes, p=row) for row in softmax(scores)])
    return scores, labels


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_scores_that_are_too_sure_or_too_shy_become_believable(factor):
    scores, labels = answers()
    temperature, believed = calibrated(factor * scores, labels)
    assert temperature == pytest.approx(factor, rel=0.1)
    assert reliability(softmax(factor * scores), labels).ece > 0.1
    assert reliability(believed, labels).ece < 0.03


def test_no_row_is_calibrated_by_itself():
    """Scores of one hand that change by a factor change nothing of its own temperature, but all of the other's."""
    scores = np.random.default_rng(0).normal(size=(40, 2))
    labels = np.arange(40) % 2
    scores[np.arange(30), labels[:30]] += 2  # most are right
    _, before = calibrated(scores, labels)
    hand = (np.arange(40) // 2 + labels) % 2 == 0
    changed = np.where(hand[:, None], 3 * scores, scores)
    _, after = calibrated(changed, labels)

    def temperature(believed, used):
        """What one row's scores were divided by."""
        return (used[:, 0] - used[:, 1]) / np.log(believed[:, 0] / believed[:, 1])

    own_before, own_after = temperature(before, scores)[hand], temperature(after, changed)[hand]
    np.testing.assert_allclose(own_after, own_before, rtol=1e-3)
    others_before, others_after = temperature(before, scores)[~hand], temperature(after, changed)[~hand]
    np.testing.assert_allclose(others_after, 3 * others_before, rtol=0.15)


def test_a_perfect_answer_to_few_questions_is_not_certainty():
    scores = 10 * np.eye(5)[np.arange(100) % 5] + np.random.default_rng(0).normal(size=(100, 5))
    temperature, _ = calibrated(scores, np.arange(100) % 5)
    doubtful = np.array([[5.3, 5.0, 0, 0, 0]])
    assert softmax(doubtful, temperature).max() < 0.8


def test_answers_are_given_where_nine_in_ten_are_right():
    scores, labels = answers(count=20_000)
    believed = softmax(scores)
    least = threshold(believed, labels)
    assert 0.5 < least < 0.95
    figures = sureness(believed, labels, least)
    assert figures["val/right when answered"] == pytest.approx(0.9, abs=0.01)
    assert 0.2 < figures["val/answered"] < 0.9


def test_what_is_less_probable_than_not_is_unsure_in_any_case():
    believed = np.full((10, 3), 0.05)
    believed[:, 0] = 0.9
    assert threshold(believed, np.zeros(10, dtype=int)) == 0.5
    assert threshold(believed, np.ones(10, dtype=int)) > 0.9


def test_accuracy_by_source():
    files = [LabelledFile(f"{n}.jpg", "any", "birds" if n < 2 else "trees", "val") for n in range(4)]
    scores = np.eye(4)[[0, 1, 2, 2]]
    figures = accuracies(scores, np.arange(4), files)
    assert (figures["val/accuracy"], figures["birds/val/accuracy"], figures["trees/val/accuracy"]) == (0.75, 1.0, 0.5)


def test_a_prior_that_is_learned_from_the_set_helps():
    scores, labels = answers(count=600)
    figures = prior_shift(softmax(scores), labels, np.full(6, 1 / 6))
    assert figures["prior shift/uncorrected"] < figures["prior shift/estimated prior"]
    assert figures["prior shift/estimated prior"] <= figures["prior shift/known prior"] + 0.01
