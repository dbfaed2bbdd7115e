"""The verified observations of a collection as a Darwin Core archive, the form in which biodiversity data are shared.

Every cell is quoted, so that notes keep their tabs, line breaks and quotes. Rows are read page by page; those of the
pictures wait in a file until the occurrences are written, so that both tell of the same observations.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from tempfile import SpooledTemporaryFile
from typing import IO
from zipfile import ZIP_DEFLATED

from sqlalchemy import select
from sqlalchemy.orm import Session, defer
from zipstream import ZipStream

from serving.library import Library
from serving.review.darwin_core_description import eml_xml, meta_xml
from serving.review.dataset_export import AT_ONCE, IN_MEMORY, chunks
from serving.review.taxonomy import lineage_in
from serving.store.review_tables import Observation, ObservationImage, Taxon, Vote

OCCURRENCE = (
    "occurrenceID",
    "basisOfRecord",
    "eventDate",
    "decimalLatitude",
    "decimalLongitude",
    "locality",
    "recordedBy",
    "identifiedBy",
    "scientificName",
    "taxonRank",
    "taxonID",
    "identificationVerificationStatus",
    "occurrenceRemarks",
)
MULTIMEDIA = ("type", "identifier", "format")
Rows = list[tuple[object, ...]]


def darwin_core_archive(library: Library, collection: str) -> Iterator[bytes]:
    """The pieces of the archive, a zip file. Raises CollectionMissing at once."""
    found = library.get_collection(collection)
    number = library.get_collection_id(collection)
    return _pieces(library, number, eml_xml(found.name, found.description, datetime.now(UTC).date()))


def _pieces(library: Library, collection_id: int, eml: bytes) -> Iterator[bytes]:
    archive = ZipStream(compress_type=ZIP_DEFLATED)
    with SpooledTemporaryFile(max_size=IN_MEMORY) as pictures:
        archive.add(meta_xml(OCCURRENCE, MULTIMEDIA), "meta.xml")
        archive.add(eml, "eml.xml")
        archive.add(_occurrences(library, collection_id, pictures), "occurrence.txt")
        yield from archive.all_files()
        archive.add(chunks(pictures), "multimedia.txt")
        yield from archive.finalize()


def _occurrences(library: Library, collection_id: int, pictures: IO[bytes]) -> Iterator[bytes]:
    """The core; the rows of its pictures go into the other file on the way."""
    pictures.write(_table([("coreid", *MULTIMEDIA)]))
    yield _table([("id", *OCCURRENCE)])
    after = 0
    while True:
        with library.read() as session:
            page = _page(session, collection_id, after)
            rows, shown = _describe(session, page)
        if not page:
            return
        pictures.write(_table(shown))
        yield _table(rows)
        after = page[-1].id


def _page(session: Session, collection_id: int, after: int) -> Sequence[Observation]:
    query = (
        select(Observation)
        .options(defer(Observation.identification))
        .where(Observation.collection_id == collection_id, Observation.status == "verified", Observation.id > after)
    )
    return session.scalars(query.order_by(Observation.id).limit(AT_ONCE)).all()


def _describe(session: Session, page: Sequence[Observation]) -> tuple[Rows, Rows]:
    """A row for each observation, and one for each of their pictures."""
    numbers = [observation.id for observation in page]
    votes: dict[int, list[Vote]] = defaultdict(list)
    standing = select(Vote).where(Vote.observation_id.in_(numbers), Vote.withdrawn.is_(False))
    for vote in session.scalars(standing.order_by(Vote.id)):
        votes[vote.observation_id].append(vote)
    images: dict[int, list[str]] = defaultdict(list)
    kept = select(ObservationImage.observation_id, ObservationImage.media_type)
    for number, media_type in session.execute(
        kept.where(ObservationImage.observation_id.in_(numbers)).order_by(ObservationImage.id)
    ):
        images[number].append(media_type)
    rows: Rows = [_occurrence(session, observation, votes[observation.id]) for observation in page]
    shown: Rows = [
        (number, "StillImage", f"/v1/observations/{number}/images/{place}", media_type)
        for number in numbers
        for place, media_type in enumerate(images[number], start=1)
    ]
    return rows, shown


def _occurrence(session: Session, observation: Observation, votes: Sequence[Vote]) -> tuple[object, ...]:
    assert observation.taxon_id is not None, "what is verified has a taxon"
    taxon, lineage = session.get_one(Taxon, observation.taxon_id), lineage_in(session)
    # Who said something else did not identify it, even though their vote stands.
    people = [vote.who for vote in votes if vote.taxon_id is not None and taxon.id in lineage(vote.taxon_id)]
    return (
        observation.id,
        f"urn:readleaf:observation:{observation.id}",
        "HumanObservation",
        observation.observed,
        observation.latitude,
        observation.longitude,
        observation.place,
        observation.observer,
        " | ".join(dict.fromkeys(people)),
        taxon.name,
        taxon.rank,
        f"urn:readleaf:taxon:{taxon.id}",
        observation.status,
        observation.notes,
    )


def _table(rows: Rows) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
