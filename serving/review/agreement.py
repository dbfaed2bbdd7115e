"""How far people agree: Krippendorff's alpha, 1 for all the same and 0 for no better than chance.

The library makes a table of values × values for each observation, which no memory holds for 500 species. So it is asked
value by value, each against all others, which takes two columns: a pair that differs in a and b differs once for a and
once for b, and so the mean of the answers, weighted by the disagreement that chance would give, is alpha over all
values, exactly.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable

import krippendorff


def agreement(units: Iterable[Counter[Hashable]]) -> float | None:
    """Alpha on the nominal level; a unit says how many people gave it each value. None where it is undefined."""
    rows: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)  # value → with and without it, unit by unit
    total = 0
    for unit in units:
        people = unit.total()
        if people < 2:
            continue
        total += people
        for value, count in unit.items():
            rows[value].append((count, people - count))
    if len(rows) < 2:  # nobody, or only one value: chance could not have disagreed
        return None
    weighted = weights = 0.0
    for found in rows.values():
        own = sum(count for count, _ in found)
        elsewhere = total - sum(map(sum, found))  # units without the value are as one in which all say "another"
        counts = [*found, (0, elsewhere)] if elsewhere else found
        weight = own * (total - own)
        weighted += weight * float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))
        weights += weight
    return weighted / weights
