"""What votes amount to, case by case."""

import pytest

from serving.review.consensus import OPEN, REJECTED, UNCERTAIN, Ballot, Outcome, decide

# 1 family ─ 2 genus ─ 3 species ─ 6 subspecies
#                    ╰ 4 species
#          ╰ 5 another genus
PARENTS = {1: None, 2: 1, 3: 2, 4: 2, 5: 1, 6: 3}


def lineage(taxon):
    line = []
    while taxon is not None:
        line.append(taxon)
        taxon = PARENTS[taxon]
    return line


def ballots(words):
    kinds = {"?": "cannot_tell", "x": "not_an_organism"}
    return [Ballot(kinds[word]) if word in kinds else Ballot("taxon", int(word)) for word in words]


def verified(taxon):
    return Outcome("verified", taxon)


@pytest.mark.parametrize(
    ("votes", "outcome"),
    [
        ("", OPEN),
        ("3", verified(3)),
        ("2", verified(2)),
        ("34", verified(4)),
        ("?", UNCERTAIN),
        ("x", REJECTED),
        ("3x", REJECTED),
    ],
)
def test_one_expert_decides(votes, outcome):
    assert decide(ballots(votes), "one_expert", lineage) == outcome


@pytest.mark.parametrize(
    ("votes", "outcome", "why"),
    [
        ("", OPEN, "nobody said anything"),
        ("3", OPEN, "one person is not two"),
        ("33", verified(3), "two agree"),
        ("34", verified(2), "two species of one genus agree on the genus"),
        ("35", verified(1), "two genera agree on the family"),
        ("334", verified(2), "two of three is not more than two thirds, the genus has all"),
        ("3334", verified(3), "three of four are"),
        ("332", verified(3), "who says the genus does not contradict"),
        ("331", verified(3), "nor who says the family"),
        ("322", verified(2), "one person alone knows the species"),
        ("32", verified(2), "so it is with two"),
        ("66", verified(6), "the most exact taxon is taken"),
        ("63", verified(3), "who says the subspecies says the species, too"),
        ("636", verified(6), "two know the subspecies, and the third does not contradict"),
        ("3?", OPEN, "who cannot tell stands aside, and one is left"),
        ("33?", verified(3), "who cannot tell stands aside"),
        ("??", UNCERTAIN, "nobody can tell"),
        ("???3", UNCERTAIN, "three of four cannot"),
        ("??3", OPEN, "two of three is not more than two thirds"),
        ("xx", REJECTED, "two say it is none"),
        ("xx3", OPEN, "two of three is not more than two thirds"),
        ("xxx3", REJECTED, "three of four are"),
        ("33x", OPEN, "who says it is none contradicts"),
        ("333x", verified(3), "three of four are"),
        ("33xx", OPEN, "two against two"),
        ("333xxx", UNCERTAIN, "six people disagree, and a seventh would not help"),
    ],
)
def test_two_thirds(votes, outcome, why):
    assert decide(ballots(votes), "two_thirds", lineage) == outcome, why


def test_a_taxon_at_the_top_is_shared_by_nothing():
    assert decide([Ballot("taxon", 7), Ballot("taxon", 8)], "two_thirds", lambda taxon: [taxon]) == OPEN
