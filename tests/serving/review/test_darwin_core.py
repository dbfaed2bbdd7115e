"""Darwin Core archives, read with somebody else's reader."""

from random import Random

import numpy as np
import pytest
from dwca.darwincore.utils import qualname
from dwca.read import DwCAReader

from serving.errors import CollectionMissing
from serving.library import Library, NewPicture
from serving.review import darwin_core
from serving.review.darwin_core import darwin_core_archive
from serving.review.desk import ReviewDesk
from serving.review.observations import Circumstances, NewImage, NewObservation
from serving.review.taxonomy import NewTaxon
from serving.review.votes import NewVote
from serving.store.database import open_database

DIM = 4
DUBLIN_CORE = "http://purl.org/dc/terms/"
ODD = 'tab\there, "quoted", a line\nand\r\nanother\rone, Ёж 🌿, \\t, \u2028 and \x85; a " alone'


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    with open_database(folder / "readleaf.db") as database:
        library = Library(database, folder, model="a" * 64, dim=DIM)
        desk = ReviewDesk(library, Random(1))
        library.create_collection("Gärten & <Parks>", "what\x0b is\tin them")
        desk.set_policy("Gärten & <Parks>", rule="two_thirds", blind=False, random_share=0.0)
        yield library, desk


def submit(desk, seed, pictures=1, **circumstances):
    vector = np.ones(DIM, dtype=np.float32) / 2
    images = [
        NewImage(NewPicture(f"{seed} {number}".encode(), media_type, 1, 1), vector)
        for number, media_type in zip(range(pictures), ("image/jpeg", "image/png"), strict=False)
    ]
    known = {"predictions": [], "rejected": False, "reason": None, "model": "a" * 64}
    new = NewObservation(images, known, Circumstances(**circumstances))
    return desk.submit("Gärten & <Parks>", new, "visitor").observation.id


def vote(desk, number, who, taxon):
    assert desk.next("Gärten & <Parks>", who)[0].observation.id == number
    return desk.vote(number, NewVote("taxon", taxon), who).observation


def read(library, tmp_path):
    """Core rows with their extensions, as another program sees them."""
    file = tmp_path / "archive.zip"
    file.write_bytes(b"".join(darwin_core_archive(library, "Gärten & <Parks>")))
    with DwCAReader(str(file)) as archive:
        assert archive.core_contains_term(qualname("occurrenceID"))
        assert archive.descriptor.core.type == qualname("Occurrence")
        title = archive.metadata.findtext("dataset/title")
        about = archive.metadata.findtext("dataset/abstract/para")
        rows = [(row.id, row.data, [each.data for each in row.extensions]) for row in archive]
    return title, about, rows


def test_what_is_verified_is_in_it(place, tmp_path):
    library, desk = place
    genus = desk.make_taxon(NewTaxon("Quercus", "genus"), "ann").id
    robur = desk.make_taxon(NewTaxon('Quercus "robur" × Ё', "species", genus), "ann").id
    elm = desk.make_taxon(NewTaxon("Ulmus", "genus"), "ann").id
    number = submit(
        desk,
        1,
        pictures=2,
        observed="2026-05-01T10:00",
        latitude=-12.5,
        longitude=0.0,
        place="Łódź\tpark",
        observer='Ann "A." Bee',
        notes=ODD,
    )
    for who, taxon in (("ann", robur), ("bob", robur)):
        status = vote(desk, number, who, taxon).status
    assert status == "verified"
    other = submit(desk, 2)
    assert vote(desk, other, "ann", elm).status == "needs_review"
    title, about, rows = read(library, tmp_path)
    assert (title, about) == ("Gärten & <Parks>", "what is\tin them")
    [(key, found, pictures)] = rows
    assert key == str(number)
    assert found == {
        qualname(name): value
        for name, value in {
            "occurrenceID": f"urn:readleaf:observation:{number}",
            "basisOfRecord": "HumanObservation",
            "eventDate": "2026-05-01T10:00",
            "decimalLatitude": "-12.5",
            "decimalLongitude": "0.0",
            "locality": "Łódź\tpark",
            "recordedBy": 'Ann "A." Bee',
            "identifiedBy": "ann | bob",
            "scientificName": 'Quercus "robur" × Ё',
            "taxonRank": "species",
            "taxonID": f"urn:readleaf:taxon:{robur}",
            "identificationVerificationStatus": "verified",
            "occurrenceRemarks": ODD,
        }.items()
    }
    assert pictures == [
        {
            DUBLIN_CORE + "type": "StillImage",
            DUBLIN_CORE + "identifier": f"/v1/observations/{number}/images/{place}",
            DUBLIN_CORE + "format": media_type,
        }
        for place, media_type in ((1, "image/jpeg"), (2, "image/png"))
    ]


def test_who_said_something_else_did_not_identify_it(place, tmp_path):
    library, desk = place
    oak, elm = (desk.make_taxon(NewTaxon(name), "ann").id for name in ("oak", "elm"))
    number = submit(desk, 1)
    vote(desk, number, "ann", oak)
    vote(desk, number, "bob", elm)
    desk.set_policy("Gärten & <Parks>", rule="one_expert", blind=False, random_share=0.0)
    _, _, [(_, found, _)] = read(library, tmp_path)
    assert (found[qualname("identifiedBy")], found[qualname("scientificName")]) == ("bob", "elm")


def test_pages_join(place, tmp_path, monkeypatch):
    library, desk = place
    monkeypatch.setattr(darwin_core, "AT_ONCE", 2)
    desk.set_policy("Gärten & <Parks>", rule="one_expert", blind=False, random_share=0.0)
    oak = desk.make_taxon(NewTaxon("oak"), "ann").id
    for seed in range(5):
        vote(desk, submit(desk, seed), "ann", oak)
    _, _, rows = read(library, tmp_path)
    assert [(key, len(pictures)) for key, _, pictures in rows] == [(str(number), 1) for number in range(1, 6)]


def test_nothing_verified_is_an_empty_table(place, tmp_path):
    library, _ = place
    assert read(library, tmp_path)[2] == []
    with pytest.raises(CollectionMissing):
        darwin_core_archive(library, "nothing")
