"""The append-only history: every event, and what replaying all of them gives.

What the tables say of an observation is what its events say: a test replays them and compares.

submitted   an observation was sent in                       facts: collection
voted       somebody said what it is                         facts: vote, kind, taxon, comment, replaces (votes)
withdrawn   a vote was taken back, by its owner or a split   facts: vote
decided     the votes amount to something else than before   facts: status, taxon, votes, model
item_added, item_removed                                     facts: item, collection
taxon_made, renamed, placed, filled_in, merged (facts: into), split (facts: parts)
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from serving.store.review_tables import Event


@dataclass
class State:
    """What is known of an observation."""

    status: str = "needs_review"
    taxon: int | None = None
    votes: dict[int, tuple[str, str, int | None]] = field(default_factory=dict)  # number → who, kind, taxon
    items: set[int] = field(default_factory=set)


def note(
    session: Session,
    event: str,
    who: str,
    *,
    observation: int | None = None,
    about: int | None = None,
    **facts: object,
) -> None:
    """Add an event of an observation, or one `about` a taxon; it is kept if, and only if, what it tells of is."""
    session.add(Event(kind=event, who=who, observation_id=observation, taxon_id=about, facts=facts))


def replay(events: Iterable[Event]) -> dict[int, State]:
    """The state of every observation after all these events, in order."""
    states: dict[int, State] = {}
    for event in events:
        if event.kind == "merged":
            _merge(states.values(), event.taxon_id, event.facts["into"])
        if event.observation_id is None:
            continue
        state = states.setdefault(event.observation_id, State())
        facts = event.facts
        match event.kind:
            case "voted":
                for vote in facts["replaces"]:
                    del state.votes[vote]
                state.votes[facts["vote"]] = event.who, facts["kind"], facts["taxon"]
            case "withdrawn":
                del state.votes[facts["vote"]]
            case "decided":
                state.status, state.taxon = facts["status"], facts["taxon"]
            case "item_added":
                state.items.add(facts["item"])
            case "item_removed":
                state.items.discard(facts["item"])
    return states


def _merge(states: Iterable[State], gone: int | None, into: int) -> None:
    for state in states:
        state.taxon = into if gone is not None and state.taxon == gone else state.taxon
        state.votes = {
            number: (who, kind, into if gone is not None and taxon == gone else taxon)
            for number, (who, kind, taxon) in state.votes.items()
        }
