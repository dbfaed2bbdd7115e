"""Reads files of taxa: a table with our column names or those of Darwin Core, or a Darwin Core archive of taxa."""

import csv
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from serving.errors import TaxonomyBroken
from serving.review.taxonomy_archives import layout_of
from serving.schemas import MAX_LABEL, clean

MOST_BYTES = 64 << 20  # of a table, unpacked; a larger one is too much for one transaction
MAX_RANK = 50
LARGEST = 2**63 - 1  # number of the database
ACCEPTED = (
    "accepted are a CSV or TSV file with the columns name, rank, parent, synonyms, common_names and gbif_key, one with "
    "those of Darwin Core such as scientificName, and a Darwin Core archive of taxa"
)
# Column in small letters → field; ours and Darwin Core's may be mixed.
COLUMNS = {
    "name": "name",
    "scientificname": "name",
    "rank": "rank",
    "taxonrank": "rank",
    "parent": "parent",
    "parentnameusage": "parent",
    "parentnameusageid": "parent_key",
    "taxonid": "key",
    "acceptednameusageid": "accepted_key",
    "taxonomicstatus": "status",
    "synonyms": "synonyms",
    "common_names": "common_names",
    "vernacularname": "common_names",
    "gbif_key": "gbif_key",
}


@dataclass(frozen=True)
class TaxonRow:
    """A row of a file; what it does not say is empty."""

    line: int
    name: str
    rank: str = ""
    parent: str = ""
    parent_key: str = ""
    key: str = ""
    accepted_key: str = ""
    status: str = ""
    synonyms: tuple[str, ...] = ()
    common_names: tuple[str, ...] = ()
    gbif_key: int | None = None
    trouble: str = ""  # why it cannot be taken, if so


def read_taxa(source: Path | bytes) -> list[TaxonRow]:
    """All rows of a file, in order; raises TaxonomyBroken if it is none of the known forms."""
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as stream:
        is_archive = stream.read(2) == b"PK"
        stream.seek(0)
        try:
            return _read_archive(stream) if is_archive else _read_table(stream)
        except (UnicodeError, csv.Error) as error:
            raise TaxonomyBroken(f"the table cannot be read: {error}; {ACCEPTED}") from None
        # What zipfile raises for damage, for a password, and for a compression it does not know.
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, RuntimeError) as error:
            raise TaxonomyBroken(f"the archive cannot be unpacked: {error}; {ACCEPTED}") from None


def _read_table(stream: IO[bytes]) -> list[TaxonRow]:
    _check_size(stream.seek(0, io.SEEK_END))
    stream.seek(0)
    with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        first = text.readline()
        text.seek(0)
        reader = csv.reader(text, delimiter=max("\t,;", key=first.count), strict=True)
        header = [name.strip().lower() for name in next(reader, [])]
        columns = {place: COLUMNS[name] for place, name in enumerate(header) if name in COLUMNS}
        _check_columns(columns)
        return list(_rows(reader, columns, {}, len(header)))


def _read_archive(stream: IO[bytes]) -> list[TaxonRow]:
    with zipfile.ZipFile(stream) as archive:
        layout = layout_of(archive)
        columns = {place: COLUMNS[term] for place, term in layout.columns.items() if term in COLUMNS}
        _check_columns(columns)
        defaults = {COLUMNS[term]: value for term, value in layout.defaults.items() if term in COLUMNS}
        _check_size(archive.getinfo(layout.file).file_size)
        with io.TextIOWrapper(archive.open(layout.file), encoding=layout.encoding, newline="") as text:
            quotes: dict[str, Any] = {"quotechar": layout.quote} if layout.quote else {"quoting": csv.QUOTE_NONE}
            reader = csv.reader(text, delimiter=layout.delimiter, **quotes)
            for _ in range(layout.header_lines):
                next(reader, None)
            return list(_rows(reader, columns, defaults, None))


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        raise TaxonomyBroken(f"the table is larger than {MOST_BYTES >> 20} MB; import it in parts")


def _check_columns(columns: Mapping[int, str]) -> None:
    fields = list(columns.values())
    if "name" not in fields:
        raise TaxonomyBroken(f"the table has no column name or scientificName; {ACCEPTED}")
    for field in fields:
        # An archive's identifier may be given twice, as such and as a term, and is the same.
        if field != "key" and fields.count(field) > 1:
            raise TaxonomyBroken(f"two columns of the table mean the {field}; leave one of them out")


def _rows(
    reader: Any, columns: Mapping[int, str], defaults: Mapping[str, str], width: int | None
) -> Iterator[TaxonRow]:
    """`reader` is one of the csv module, which has no name for their type."""
    line = reader.line_num + 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            found = {field: cells[place] for place, field in columns.items() if place < len(cells)}
            said = {field: text for field, text in found.items() if text.strip()}
            trouble = f"it has {len(cells)} cells, the header {width}" if width and len(cells) > width else ""
            yield _row(line, {**defaults, **said}, trouble)
        line = reader.line_num + 1  # a row may be several lines long


def _row(line: int, said: Mapping[str, str], trouble: str) -> TaxonRow:
    """Clean what a row says; the first thing that is wrong is its trouble."""
    try:
        if trouble:
            raise ValueError(trouble)
        return TaxonRow(
            line,
            _text(said, "name", MAX_LABEL),
            _text(said, "rank", MAX_RANK, needed=False).lower(),
            _text(said, "parent", MAX_LABEL, needed=False),
            said.get("parent_key", "").strip(),
            said.get("key", "").strip(),
            said.get("accepted_key", "").strip(),
            said.get("status", "").strip(),
            _list(said, "synonyms"),
            _list(said, "common_names"),
            _gbif_key(said.get("gbif_key", "").strip()),
        )
    except ValueError as error:
        return TaxonRow(line, said.get("name", "").strip(), key=said.get("key", "").strip(), trouble=str(error))


def _text(said: Mapping[str, str], field: str, longest: int, *, needed: bool = True) -> str:
    text = said.get(field, "")
    if not text.strip() and not needed:
        return ""
    try:
        text = clean(text)
    except ValueError as error:
        raise ValueError(f"the {field} {error}") from None
    if len(text) > longest:
        raise ValueError(f"the {field} is {len(text)} characters long; at most {longest}")
    return text


def _list(said: Mapping[str, str], field: str) -> tuple[str, ...]:
    parts: Sequence[str] = said.get(field, "").split("|")
    found = [_text({field: part}, field, MAX_LABEL) for part in parts if part.strip()]
    return tuple(dict.fromkeys(found))


def _gbif_key(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and 0 < int(text) <= LARGEST):
        raise ValueError(f"the gbif_key {text[:50]!r} is not a number above 0")
    return int(text)
