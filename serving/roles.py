"""What a caller may do: four roles, each of which may do all that the one before it may."""

import re
from enum import StrEnum


class Role(StrEnum):
    """From the least to the most."""

    READ = "read"
    WRITE = "write"
    EXPERT = "expert"
    ADMIN = "admin"

    def allows(self, needed: "Role") -> bool:
        """Whether this role may do what `needed` may."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


ASKING = frozenset({"GET", "HEAD", "OPTIONS"})
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})

# Methods, a pattern of the route's path as OpenAPI writes it with {} for its parts, and who may; the first that fits.
RULES: tuple[tuple[frozenset[str], str, Role], ...] = (
    (frozenset({"GET"}), r"/v1/review/figures", Role.READ),
    (ASKING | CHANGING, r"/v1/review/.+", Role.EXPERT),
    (CHANGING, r"/v1/observations/{}/.+", Role.EXPERT),  # votes, undo, lease
    (CHANGING, r"/v1/taxa(/.+)?", Role.ADMIN),
    (CHANGING, r"/v1/models/.+", Role.ADMIN),
    (CHANGING, r"/v1/collections/{}/policy", Role.ADMIN),
    (frozenset({"DELETE"}), r"/v1/collections/{}", Role.ADMIN),
    # Questions that carry a picture and change nothing.
    (frozenset({"POST"}), r"/v1/(read|recognize|embed|classify)", Role.READ),
    (frozenset({"POST"}), r"/v1/collections/{}/(search|identify)", Role.READ),
    (ASKING, r".*", Role.READ),
)


def needed_role(method: str, route: str) -> Role:
    """The least role for a call of a route, such as `/v1/collections/{collection}`; `write` where no rule fits."""
    plain = re.sub(r"\{[^}]*\}", "{}", route)
    fitting = (role for methods, path, role in RULES if method in methods and re.fullmatch(path, plain))
    return next(fitting, Role.WRITE)
