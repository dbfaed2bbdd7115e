"""Taxa by number: found, made, renamed, placed elsewhere, merged, split. Items, votes and decisions follow.

An item's label is the accepted name of its taxon, so that a collection can be searched, filled and exported without
knowing of taxa at all; a change of names changes labels in the same transaction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import String, cast, or_, select, update
from sqlalchemy.orm import Session

from serving.errors import TaxonConflict, TaxonMissing
from serving.review.history import note
from serving.store.review_tables import Observation, Taxon, Vote
from serving.store.tables import Item

UNRANKED = "unranked"
# Coarse to fine; any other word is accepted as a rank, too, and is not compared.
RANKS = ("kingdom", "phylum", "class", "order", "family", "genus", "species", "subspecies", "variety", "form")


@dataclass(frozen=True)
class NewTaxon:
    """A taxon to be made."""

    name: str
    rank: str = UNRANKED
    parent: int | None = None
    synonyms: Sequence[str] = ()
    common_names: Sequence[str] = ()
    gbif_key: int | None = None


def find_taxon(session: Session, number: int) -> Taxon:
    """A taxon that may be named; one that was merged is the one it was merged into. Raises TaxonMissing."""
    taxon = session.get(Taxon, number)
    while taxon is not None and taxon.merged_into is not None:
        taxon = session.get(Taxon, taxon.merged_into)
    if taxon is None:
        raise TaxonMissing(f"there is no taxon {number}; GET /v1/taxa finds one by its name")
    if taxon.retired:
        raise TaxonMissing(f"taxon {number}, {taxon.name}, was split up; name one of its parts")
    return taxon


def taxon_named(session: Session, name: str) -> Taxon | None:
    """The live taxon whose accepted name this is."""
    return session.scalar(select(Taxon).where(Taxon.name == name, Taxon.retired.is_(False)))


def taxon_of_label(session: Session, label: str, who: str) -> Taxon:
    """The taxon of a label, made if nobody has yet: collections are filled without knowing of taxa."""
    return taxon_named(session, label) or make_taxon(session, NewTaxon(label), who)


def make_taxon(session: Session, new: NewTaxon, who: str) -> Taxon:
    """A taxon that is not there yet; raises TaxonConflict for a name that is taken."""
    _check_free(session, new.name)
    taxon = Taxon(
        name=new.name,
        rank=new.rank,
        parent_id=None if new.parent is None else find_taxon(session, new.parent).id,
        synonyms=list(new.synonyms),
        common_names=list(new.common_names),
        gbif_key=new.gbif_key,
    )
    session.add(taxon)
    session.flush()
    note(session, "taxon_made", who, about=taxon.id, name=taxon.name, rank=taxon.rank, parent=taxon.parent_id)
    return taxon


def lineage_in(session: Session) -> Callable[[int], list[int]]:
    """A function that gives a taxon, its parent, and so on up to the root."""

    def lineage(number: int) -> list[int]:
        line: list[int] = []
        taxon = session.get(Taxon, number)
        while taxon is not None and taxon.id not in line:
            line.append(taxon.id)
            taxon = session.get(Taxon, taxon.parent_id) if taxon.parent_id is not None else None
        return line

    return lineage


def rename(session: Session, number: int, name: str, who: str) -> Taxon:
    """Another accepted name; the old one becomes a synonym, and items are labelled anew."""
    taxon = find_taxon(session, number)
    if taxon.name == name:
        return taxon
    _check_free(session, name)
    _relabel(session, taxon.name, name)
    note(session, "renamed", who, about=taxon.id, before=taxon.name, after=name)
    taxon.synonyms = _without(name, [*taxon.synonyms, taxon.name])
    taxon.name = name
    return taxon


def place(session: Session, number: int, parent: int | None, who: str) -> tuple[Taxon, set[int]]:
    """Below another taxon, or at the top; returns observations to be settled anew. A circle is a TaxonConflict."""
    taxon = find_taxon(session, number)
    above = None if parent is None else find_taxon(session, parent)
    if above is not None and taxon.id in lineage_in(session)(above.id):
        raise TaxonConflict(f"{above.name} is {taxon.name} or below it; a taxon cannot be placed under itself")
    parent_id = None if above is None else above.id
    note(session, "placed", who, about=taxon.id, before=taxon.parent_id, after=parent_id)
    taxon.parent_id = parent_id
    session.flush()
    return taxon, _voted_on(session, _below(session, taxon.id))


def merge(session: Session, number: int, into: int, who: str) -> tuple[Taxon, set[int]]:
    """Two taxa become one: the first is retired, and everything that named it names the second.

    Returns the second, and observations to be settled anew.
    """
    gone, kept = find_taxon(session, number), find_taxon(session, into)
    if gone.id in lineage_in(session)(kept.id):
        raise TaxonConflict(f"{kept.name} is {gone.name} or below it; merge the other way round")
    _relabel(session, gone.name, kept.name)
    for table, column in ((Vote, Vote.taxon_id), (Observation, Observation.taxon_id), (Taxon, Taxon.parent_id)):
        session.execute(update(table).where(column == gone.id).values({column.key: kept.id}))
    kept.synonyms = _without(kept.name, [*kept.synonyms, gone.name, *gone.synonyms])
    kept.common_names = _without("", [*kept.common_names, *gone.common_names])
    gone.retired, gone.merged_into = True, kept.id
    note(session, "merged", who, about=gone.id, into=kept.id)
    session.flush()
    return kept, _voted_on(session, _below(session, kept.id))


def split(session: Session, number: int, parts: Sequence[NewTaxon], who: str) -> tuple[list[Taxon], Taxon]:
    """One taxon becomes several; one of them may keep its name. What named it is left to the caller to send back."""
    taxon = find_taxon(session, number)
    names = [part.name for part in parts]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise TaxonConflict("a taxon is split into two or more parts with different names")
    made = []
    for part in parts:
        if part.name == taxon.name:
            made.append(taxon)
            continue
        known = taxon_named(session, part.name)
        above = part.parent if part.parent is not None else taxon.parent_id
        rank = taxon.rank if part.rank == UNRANKED else part.rank
        fresh = NewTaxon(part.name, rank, above, part.synonyms, part.common_names, part.gbif_key)
        made.append(known or make_taxon(session, fresh, who))
    if taxon not in made:
        taxon.retired = True
        session.execute(update(Taxon).where(Taxon.parent_id == taxon.id).values(parent_id=taxon.parent_id))
    note(session, "split", who, about=taxon.id, parts=[part.id for part in made])
    session.flush()
    return made, taxon


def search_taxa(session: Session, text: str, limit: int, after: int = 0) -> list[Taxon]:
    """Live taxa that have `text` in one of their names, by number; all of them, if it is empty."""
    query = select(Taxon).where(Taxon.retired.is_(False), Taxon.id > after)
    if text:
        columns = (Taxon.name, cast(Taxon.synonyms, String), cast(Taxon.common_names, String))
        query = query.where(or_(*(column.icontains(text, autoescape=True) for column in columns)))
    return list(session.scalars(query.order_by(Taxon.id).limit(limit)))


def _check_free(session: Session, name: str) -> None:
    known = taxon_named(session, name)
    if known is not None:
        raise TaxonConflict(f"{name} is taxon {known.id} already; use that one, or merge the two", taxon=known.id)


def _relabel(session: Session, before: str, after: str) -> None:
    session.execute(update(Item).where(Item.label == before).values(label=after))


def _below(session: Session, number: int) -> set[int]:
    """A taxon and everything below it."""
    found, fresh = {number}, [number]
    while fresh:
        children = session.scalars(select(Taxon.id).where(Taxon.parent_id.in_(fresh)))
        fresh = [child for child in children if child not in found]
        found.update(fresh)
    return found


def _voted_on(session: Session, taxa: set[int]) -> set[int]:
    """Observations with votes for these."""
    query = select(Vote.observation_id).where(Vote.taxon_id.in_(taxa), Vote.withdrawn.is_(False))
    return set(session.scalars(query))


def _without(name: str, names: Sequence[str]) -> list[str]:
    return [each for each in dict.fromkeys(names) if each and each != name]
