"""What neighbours and a classifier make of an organism."""

from dataclasses import dataclass

import pytest

from serving.library import Neighbour
from serving.pipelines.identify import CLASSIFIER, POWER, Look, among, averaged, familiarity, identify, suggest


@dataclass
class Thing:
    id: int
    label: str | None


def near(*pairs):
    return [Neighbour(Thing(number, label), similarity) for number, (label, similarity) in enumerate(pairs, start=1)]


def scores(suggestions):
    return {each.label: round(each.score, 6) for each in suggestions}


def test_neighbours_vote_by_similarity():
    found = suggest(near(("oak", 0.8), ("elm", 0.4), (None, 0.5), ("oak", 0.2), ("elm", -0.5)), None, {})
    weights = {"oak": 0.8**POWER + 0.2**POWER, "elm": 0.4**POWER}
    shares = {label: pytest.approx(weight / sum(weights.values()), abs=1e-6) for label, weight in weights.items()}
    assert scores(found) == shares
    assert [each.item.id for each in found[0].evidence] == [1, 4]
    assert found[0].classifier is None


def test_the_classifier_counts_for_the_labels_it_knows():
    neighbours = near(("oak", 0.5), ("elm", 0.5), ("new kind", 0.5), ("new kind", 0.5))
    found = {each.label: each for each in suggest(neighbours, {"oak": 0.2, "elm": 0.7, "ash": 0.1}, {})}
    part = CLASSIFIER
    assert found["new kind"].score == pytest.approx(0.5)  # it cannot speak against what it does not know
    assert found["elm"].score == pytest.approx((1 - part) * 0.25 + part * 0.5 * 0.7)
    assert found["ash"].score == pytest.approx(part * 0.5 * 0.1)
    assert sum(each.score for each in found.values()) == pytest.approx(1)
    assert (found["elm"].neighbours, found["elm"].classifier) == (pytest.approx(0.25), 0.7)
    assert found["ash"].evidence == ()


def test_a_classifier_that_knows_none_of_the_neighbours_is_not_heard():
    assert scores(suggest(near(("new kind", 1.0)), {"oak": 1.0}, {})) == {"new kind": 1.0}


def test_a_prior_weighs_both():
    weights = {"elm": 3.0}
    posterior = among({"oak": 0.6, "elm": 0.2, "ash": 0.2}, ["oak", "elm"], weights)
    assert posterior == {"oak": pytest.approx(0.5), "elm": pytest.approx(0.5)}
    found = scores(suggest(near(("oak", 0.5), ("elm", 0.5)), posterior, weights))
    assert found == {"elm": pytest.approx(0.625), "oak": pytest.approx(0.375)}


def test_pictures_are_averaged():
    first = suggest(near(("oak", 1.0)), None, {})
    second = suggest(near(*[("elm", 0.4)] * 3, *[("oak", 0.4)] * 2), None, {})
    found = averaged([first, second, []])  # a picture without neighbours has no part in it
    assert scores(found) == {"oak": pytest.approx(0.7), "elm": pytest.approx(0.3)}
    assert [each.similarity for each in found[0].evidence] == [1.0, 0.4, 0.4]


def test_a_stranger_is_farther_from_its_neighbours_than_they_are_from_theirs():
    neighbours = near(("oak", 0.6), ("oak", 0.5))
    crowded, loose = Look(neighbours, [0.9, 0.8]), Look(neighbours, [0.6, 0.5])
    assert familiarity([0.6, 0.5], [0.9, 0.8], 0.0) == pytest.approx(-0.3)
    known = {"labels": {"oak": 6}, "familiar_from": 0.0}
    assert identify([crowded], **known).rejected
    assert "farther from everything" in identify([crowded], **known).reason
    assert not identify([loose], **known).rejected
    assert not identify([crowded, loose], **known).rejected  # one good picture is enough
    assert [each.label for each in identify([crowded], **known).suggestions] == ["oak"]  # told all the same


def test_without_surroundings_the_nearest_counts():
    look = Look(near(("oak", 0.3)), [])
    assert "0.65" in identify([look], {"oak": 6}, reject_below=0.5, familiar_from=0.0).reason
    assert identify([look], {"oak": 6}, reject_below=0.2, familiar_from=0.0).reason is None
    assert "nothing here" in identify([Look([], [])], {}, reject_below=0.2).reason


def test_a_kind_with_few_pictures_has_no_surroundings():
    """The fifth neighbour of one of five is of another kind, beside which everything seems at home."""
    look = Look(near(("oak", 0.3), ("oak", 0.3), ("elm", 0.2)), [0.1, 0.1, 0.1])
    rules = {"reject_below": 0.5, "familiar_from": 0.0}
    assert identify([look], {"oak": 5, "elm": 9}, **rules).rejected
    assert not identify([look], {"oak": 6, "elm": 1}, **rules).rejected


def test_what_is_hardly_likely_is_not_shown():
    posterior = {"a": 0.99, **dict.fromkeys("bcdefghij", 0.001)}
    found = identify([Look(near(("a", 1.0)), [], posterior)], dict.fromkeys(posterior, 6))
    assert [each.label for each in found.suggestions] == ["a", "b", "c"]
