"""Finds the table of taxa in a Darwin Core archive: what its `meta.xml` says of the core."""

import zipfile
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Never
from xml.etree import ElementTree

from serving.errors import TaxonomyBroken

TEXT = "{http://rs.tdwg.org/dwc/text/}"
MOST_META_BYTES = 1 << 20
# As Darwin Core archives name them → as Python does; a byte order mark is no part of the first name.
ENCODINGS = {
    "utf-8": "utf-8-sig",
    "utf8": "utf-8-sig",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "latin-1",
    "latin1": "latin-1",
    "windows-1252": "cp1252",
    "utf-16": "utf-16",
}
ESCAPES = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\r\\n": "\r\n"}


@dataclass(frozen=True)
class Layout:
    """Where the taxa are, and what the columns mean."""

    file: str
    encoding: str
    delimiter: str
    quote: str | None
    header_lines: int
    columns: dict[int, str]  # place → term, in small letters and without its address
    defaults: dict[str, str]  # term → what it is where a row says nothing


def layout_of(archive: zipfile.ZipFile) -> Layout:
    """What `meta.xml` says; raises TaxonomyBroken."""
    metas = [name for name in archive.namelist() if PurePosixPath(name).name == "meta.xml"]
    if not metas:
        raise TaxonomyBroken("the zip file has no meta.xml, so it is no Darwin Core archive")
    meta = min(metas, key=len)  # the one nearest to the top: archives are often packed with their folder
    if archive.getinfo(meta).file_size > MOST_META_BYTES:
        raise TaxonomyBroken(f"meta.xml is larger than {MOST_META_BYTES >> 20} MB; nobody should read it")
    core = _parse(archive.read(meta)).find(f"{TEXT}core")
    if core is None or _term(core.get("rowType", "")) != "taxon":
        raise TaxonomyBroken("the archive's core is not of taxa; its rowType in meta.xml must end with Taxon")
    location = core.findtext(f"{TEXT}files/{TEXT}location", "").strip()
    file = str(PurePosixPath(meta).parent / location)
    if file not in archive.namelist():
        raise TaxonomyBroken(f"meta.xml names the file {location!r}, which the archive does not hold")
    columns, defaults = _fields(core)
    return Layout(
        file,
        _encoding(core.get("encoding", "UTF-8")),
        _character(core, "fieldsTerminatedBy", ","),
        _character(core, "fieldsEnclosedBy", '"') if core.get("fieldsEnclosedBy") != "" else None,
        _number(core.get("ignoreHeaderLines", "0"), "ignoreHeaderLines"),
        columns,
        defaults,
    )


class _NoDoctype(ElementTree.TreeBuilder):
    """Entities, which can be nested until they fill all memory, or name files of ours, are declared in a DOCTYPE."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> Never:
        """Refuse it before anything of it is read."""
        raise TaxonomyBroken("meta.xml has a DOCTYPE, which Darwin Core archives do not need; remove it")


def _parse(data: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(data, ElementTree.XMLParser(target=_NoDoctype()))
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise TaxonomyBroken(f"meta.xml is not XML that can be read: {error}") from None


def _fields(core: ElementTree.Element) -> tuple[dict[int, str], dict[str, str]]:
    columns, defaults = {}, {}
    key = core.find(f"{TEXT}id")
    if key is not None:
        columns[_number(key.get("index", "0"), "index")] = "taxonid"
    for field in core.iter(f"{TEXT}field"):
        term, index = _term(field.get("term", "")), field.get("index")
        if index is not None:
            columns[_number(index, "index")] = term
        if default := field.get("default"):
            defaults[term] = default
    return columns, defaults


def _term(address: str) -> str:
    return address.rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1].lower()


def _encoding(name: str) -> str:
    known = ENCODINGS.get(name.strip().lower())
    if known is None:
        raise TaxonomyBroken(f"meta.xml says the encoding is {name!r}; it must be one of {', '.join(ENCODINGS)}")
    return known


def _character(core: ElementTree.Element, name: str, default: str) -> str:
    written = core.get(name, default)
    found = ESCAPES.get(written, written)
    if len(found) != 1 or found in "\r\n":
        raise TaxonomyBroken(f"meta.xml says {name} is {written!r}; it must be one character")
    return found


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 5):
        raise TaxonomyBroken(f"meta.xml says {name} is {text!r}; it must be a small number")
    return int(text)
