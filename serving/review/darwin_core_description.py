"""The two descriptions in a Darwin Core archive: which column means what, and what the whole is."""

import unicodedata
from collections.abc import Sequence
from datetime import date
from xml.etree import ElementTree

TEXT = "http://rs.tdwg.org/dwc/text/"
TERMS = "http://rs.tdwg.org/dwc/terms/"
DUBLIN_CORE = "http://purl.org/dc/terms/"
MULTIMEDIA = "http://rs.gbif.org/terms/1.0/Multimedia"
EML = "https://eml.ecoinformatics.org/eml-2.2.0"


def meta_xml(occurrence: Sequence[str], multimedia: Sequence[str]) -> bytes:
    """What the columns of both tables mean; the first column, before these, is the observation's number."""
    archive = ElementTree.Element("archive", xmlns=TEXT, metadata="eml.xml")
    _table(archive, "core", "id", TERMS + "Occurrence", "occurrence.txt", [TERMS + name for name in occurrence])
    names = [DUBLIN_CORE + name for name in multimedia]
    _table(archive, "extension", "coreid", MULTIMEDIA, "multimedia.txt", names)
    return _document(archive)


def eml_xml(title: str, description: str, today: date) -> bytes:
    """The least that must be said of a dataset: its title, who made it and whom to ask, when, what it is."""
    root = ElementTree.Element("eml:eml", {"xmlns:eml": EML, "packageId": "readleaf", "system": "readleaf"})
    dataset = ElementTree.SubElement(root, "dataset")
    _say(dataset, "title", title)
    _say(ElementTree.SubElement(dataset, "creator"), "organizationName", "Readleaf")
    _say(dataset, "pubDate", today.isoformat())
    about = description or f"Verified observations of the collection {title}."
    _say(ElementTree.SubElement(dataset, "abstract"), "para", about)
    _say(ElementTree.SubElement(dataset, "contact"), "organizationName", "Readleaf")
    return _document(root)


def _table(archive: ElementTree.Element, kind: str, key: str, row: str, file: str, terms: Sequence[str]) -> None:
    form = {
        "encoding": "UTF-8",
        "fieldsTerminatedBy": "\\t",
        "linesTerminatedBy": "\\n",
        "fieldsEnclosedBy": '"',
        "ignoreHeaderLines": "1",
        "rowType": row,
    }
    table = ElementTree.SubElement(archive, kind, form)
    _say(ElementTree.SubElement(table, "files"), "location", file)
    ElementTree.SubElement(table, key, index="0")
    for index, term in enumerate(terms, start=1):
        ElementTree.SubElement(table, "field", index=str(index), term=term)


def _say(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, name).text = "".join(filter(_can_stand, text))


def _can_stand(character: str) -> bool:
    """XML has no way to write most control characters."""
    if character in "\t\n":
        return True
    return unicodedata.category(character) not in ("Cc", "Cs") and character not in "\ufffe\uffff"


def _document(root: ElementTree.Element) -> bytes:
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode").encode()
