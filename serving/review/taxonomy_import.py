"""Takes a file of taxa into the taxonomy, inside the caller's one transaction.

Names are what taxa are known by: a row whose name is there already only fills in what is missing. A row that cannot be
taken is skipped with a reason, with all rows below it, and the rest goes on.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from serving.errors import TaxonConflict
from serving.review.history import note
from serving.review.settling import settle
from serving.review.taxonomy import UNRANKED, NewTaxon, make_taxon, place
from serving.review.taxonomy_files import TaxonRow, read_taxa
from serving.store.review_tables import Observation, Taxon


@dataclass(frozen=True)
class ImportReport:
    """What became of the rows; those that only name a synonym are neither made nor known."""

    made: int
    known: int
    skipped: list[tuple[int, str]]  # line and reason
    touched: frozenset[int] = frozenset()  # collections whose index has to follow: votes were counted anew


class _Skip(Exception):
    """Why a row cannot be taken."""


def import_taxa(session: Session, source: Path | bytes, who: str) -> ImportReport:
    """Make the taxa of a file, and fill in those that are there; raises TaxonomyBroken if it is no such file."""
    return _Import(session, who, read_taxa(source)).run()


class _Import:
    def __init__(self, session: Session, who: str, rows: list[TaxonRow]) -> None:
        self._session, self._who, self._rows = session, who, rows
        self._done: dict[int, int | None] = {}  # line → taxon; None: skipped
        self._skipped: list[tuple[int, str]] = []
        self._made = self._known = 0
        self._unsettled: set[int] = set()
        self._by_key: dict[str, TaxonRow] = {}
        self._by_name: dict[str, TaxonRow] = {}
        self._synonym_rows: dict[str, TaxonRow] = {}
        self._synonyms: dict[int, list[str]] = defaultdict(list)  # line of the accepted taxon → other names
        # As it was before: a synonym that this file brings does not stand in the way of its own rows.
        self._here: dict[str, int] = {}
        self._synonyms_here: dict[str, tuple[int, str]] = {}
        live = select(Taxon.id, Taxon.name, Taxon.synonyms).where(Taxon.retired.is_(False)).order_by(Taxon.id)
        for number, name, synonyms in session.execute(live):
            self._here[name] = number
            for synonym in synonyms:
                self._synonyms_here.setdefault(synonym, (number, name))

    def run(self) -> ImportReport:
        self._sort()
        accepted_rows = [row for row in self._rows if row.line not in self._done and not _is_synonym(row)]
        synonym_rows = [(row, self._accepted(row)) for row in self._synonym_rows.values()]
        for row, accepted in synonym_rows:
            if accepted is not None:
                self._synonyms[accepted.line].append(row.name)
        for row in accepted_rows:
            self._take_with_parents(row)
        for row, accepted in synonym_rows:
            if accepted is None:
                self._skip(row, "it is a synonym, and the file has no row of the accepted name")
            elif self._done[accepted.line] is None:
                self._skip(row, f"the accepted taxon, {accepted.name} in line {accepted.line}, was skipped")
        return ImportReport(self._made, self._known, sorted(self._skipped), self._settle())

    def _sort(self) -> None:
        """Rows by key and by name; the second one of the same is skipped."""
        for row in self._rows:
            names = self._synonym_rows if _is_synonym(row) else self._by_name
            if row.key and row.key in self._by_key:
                self._skip(row, f"line {self._by_key[row.key].line} has the taxonID {row.key} already")
                continue
            if row.key:
                self._by_key[row.key] = row
            if row.trouble:
                self._skip(row, row.trouble)
            elif row.name in names:
                self._skip(row, f"line {names[row.name].line} has the name {row.name} already")
            else:
                names[row.name] = row

    def _accepted(self, row: TaxonRow) -> TaxonRow | None:
        """The row of the accepted name of a synonym, or the row itself; None if there is none."""
        seen: set[int] = set()
        found: TaxonRow | None = row
        while found is not None and _is_synonym(found):
            if found.line in seen:
                return None
            seen.add(found.line)
            found = self._by_key.get(found.accepted_key)
        return found

    def _parent(self, row: TaxonRow) -> TaxonRow | int | None:
        """What a row says is above it: a row, a taxon that is there, or nothing. Raises _Skip."""
        if row.parent_key in self._by_key:
            return self._accepted_or_skip(self._by_key[row.parent_key])
        if row.parent in self._by_name:
            return self._by_name[row.parent]
        if row.parent in self._here:
            return self._here[row.parent]
        if row.parent in self._synonym_rows:
            return self._accepted_or_skip(self._synonym_rows[row.parent])
        if row.parent in self._synonyms_here:
            return self._synonyms_here[row.parent][0]
        if row.parent or row.parent_key:
            raise _Skip(f"its parent, {row.parent or row.parent_key}, is neither in the file nor in the taxonomy")
        return None

    def _accepted_or_skip(self, row: TaxonRow) -> TaxonRow:
        found = self._accepted(row)
        if found is None:
            raise _Skip(f"its parent, {row.name} in line {row.line}, is a synonym of nothing")
        return found

    def _take_with_parents(self, row: TaxonRow) -> None:
        """Take a row after all rows above it, wherever they stand in the file."""
        chain: dict[int, tuple[TaxonRow, TaxonRow | int | None]] = {}
        at: TaxonRow | int | None = row
        while isinstance(at, TaxonRow) and at.line not in self._done:
            if at.line in chain:
                lines = list(chain)
                circle = [chain[line][0] for line in lines[lines.index(at.line) :]]
                for each in circle:
                    self._skip(each, "its parents lead back to it: " + ", ".join(one.name for one in circle[:10]))
                break
            try:
                above = self._parent(at)
            except _Skip as reason:
                self._skip(at, str(reason))
                break
            chain[at.line] = at, above
            at = above
        for each, above in reversed(chain.values()):
            if each.line not in self._done:
                self._take(each, above)

    def _take(self, row: TaxonRow, above: TaxonRow | int | None) -> None:
        """Make a taxon, or fill it in; what is above it has been taken."""
        parent = self._done[above.line] if isinstance(above, TaxonRow) else above
        if parent is None and isinstance(above, TaxonRow):
            return self._skip(row, f"its parent, {above.name} in line {above.line}, was skipped")
        synonyms = [name for name in dict.fromkeys([*row.synonyms, *self._synonyms[row.line]]) if name != row.name]
        new = NewTaxon(row.name, row.rank or UNRANKED, parent, synonyms, row.common_names, row.gbif_key)
        if row.name in self._here:
            return self._fill_in(row, self._here[row.name], new)
        if row.name in self._synonyms_here:
            number, name = self._synonyms_here[row.name]
            # Somebody renamed or merged it; a file from before must not undo that.
            return self._skip(row, f"{row.name} is a synonym of {name}, taxon {number}, here")
        self._done[row.line] = make_taxon(self._session, new, self._who).id
        self._made += 1
        return None

    def _fill_in(self, row: TaxonRow, number: int, new: NewTaxon) -> None:
        """What the taxonomy does not say and the file does; nothing is replaced."""
        taxon = self._session.get_one(Taxon, number)
        if taxon.parent_id is None and new.parent is not None:
            try:
                _, affected = place(self._session, number, new.parent, self._who)
            except TaxonConflict as conflict:
                return self._skip(row, conflict.message)
            self._unsettled |= affected
        filled: dict[str, Any] = {}
        if taxon.rank == UNRANKED and new.rank != UNRANKED:
            taxon.rank = filled["rank"] = new.rank
        if taxon.gbif_key is None and new.gbif_key is not None:
            taxon.gbif_key = filled["gbif_key"] = new.gbif_key
        if synonyms := [name for name in new.synonyms if name not in taxon.synonyms]:
            taxon.synonyms, filled["synonyms"] = [*taxon.synonyms, *synonyms], synonyms
        if names := [name for name in new.common_names if name not in taxon.common_names]:
            taxon.common_names, filled["common_names"] = [*taxon.common_names, *names], names
        if filled:
            note(self._session, "filled_in", self._who, about=number, **filled)
        self._done[row.line] = number
        self._known += 1
        return None

    def _settle(self) -> frozenset[int]:
        """Count votes anew where a taxon was placed below another; returns the collections of these observations."""
        touched = set()
        for number in sorted(self._unsettled):
            observation = self._session.get_one(Observation, number)
            settle(self._session, observation, self._who)
            touched.add(observation.collection_id)
        return frozenset(touched)

    def _skip(self, row: TaxonRow, reason: str) -> None:
        self._done[row.line] = None
        self._skipped.append((row.line, reason))


def _is_synonym(row: TaxonRow) -> bool:
    return row.accepted_key not in ("", row.key) or "synonym" in row.status.lower()
