"""Files of taxa: tables of both kinds, archives, and everything that can be wrong with them."""

import csv
import io
import time
import zipfile
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from serving.errors import TaxonomyBroken
from serving.library import Library
from serving.review.desk import ReviewDesk
from serving.review.taxonomy import NewTaxon
from serving.review.taxonomy_import import import_taxa
from serving.store.database import open_database
from serving.store.review_tables import Event, Observation, Taxon, Vote

META = """<?xml version="1.0" encoding="UTF-8"?>
<archive xmlns="http://rs.tdwg.org/dwc/text/" metadata="eml.xml">
  <core encoding="{encoding}" fieldsTerminatedBy="\\t" linesTerminatedBy="\\n" fieldsEnclosedBy="" ignoreHeaderLines="1"
        rowType="http://rs.tdwg.org/dwc/terms/{row}">
    <files><location>{file}</location></files>
    <id index="0"/>
    <field index="1" term="http://rs.tdwg.org/dwc/terms/scientificName"/>
    <field index="2" term="http://rs.tdwg.org/dwc/terms/parentNameUsageID"/>
    <field index="3" term="http://rs.tdwg.org/dwc/terms/acceptedNameUsageID"/>
    <field index="4" term="http://rs.gbif.org/terms/1.0/somethingElse"/>
    <field index="5" term="http://rs.tdwg.org/dwc/terms/taxonRank" default="species"/>
  </core>
</archive>"""
ROWS = (
    'id\tname\tup\taccepted\tx\trank\n3\tQuercus "robur\tg\t\t\t\n'
    "4\tQuercus pédonculé\t\t3\t\t\ng\tQuercus\t\t\t\tgenus\n"
)


@pytest.fixture
def place(tmp_path):
    with open_database(tmp_path / "readleaf.db") as database:
        library = Library(database, tmp_path, model="a" * 64, dim=4)
        yield library, ReviewDesk(library)


def take(library, source):
    with library.write() as session:
        return import_taxa(session, source if isinstance(source, bytes) else source.encode(), "ann")


def taxa(library):
    """Live taxa by name: rank, parent's name, synonyms, common names, GBIF key."""
    with library.read() as session:
        found = session.scalars(select(Taxon).where(Taxon.retired.is_(False))).all()
        names = {taxon.id: taxon.name for taxon in found}
        return {
            each.name: (each.rank, names.get(each.parent_id), each.synonyms, each.common_names, each.gbif_key)
            for each in found
        }


def packed(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


OAKS = {
    "Quercus": ("genus", "Fagaceae", [], [], None),
    "Fagaceae": ("family", None, [], [], None),
    "Quercus robur": ("species", "Quercus", ["Q. pedunculata", "oak"], ["Stieleiche", "chêne"], 2878688),
}


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_our_own_table_in_any_order(place, delimiter, start):
    library, _ = place
    text = (
        "name,rank,parent,synonyms,common_names,gbif_key\n"
        "Quercus robur,Species,Quercus,Q. pedunculata|oak|,Stieleiche| chêne ,2878688\n"
        "Quercus,genus,Fagaceae,,,\n\n,,,,,\n"
        '"Fagaceae",family,,,,\n'
    )
    report = take(library, start + text.replace(",", delimiter))
    assert (report.made, report.known, report.skipped) == (3, 0, [])
    assert taxa(library) == OAKS
    with library.read() as session:
        events = session.scalars(select(Event)).all()
    assert [(event.kind, event.who) for event in events] == [("taxon_made", "ann")] * 3
    again = take(library, start + text.replace(",", delimiter))
    assert (again.made, again.known, again.skipped) == (0, 3, [])
    assert taxa(library) == OAKS


def test_darwin_core_columns(place):
    library, _ = place
    report = take(
        library,
        "taxonID\tscientificName\ttaxonRank\tparentNameUsageID\tparentNameUsage\tacceptedNameUsageID\ttaxonomicStatus\tvernacularName\n"
        "s2\tQuercus pedunculata\tspecies\t\t\ts1\theterotypic synonym\t\n"
        "s1\tQuercus robur\tspecies\told\t\ts1\taccepted\toak\n"
        "g\tQuercus\tgenus\tnobody\tFagaceae\t\taccepted\t\n"
        "old\tQuercella\tgenus\t\t\tolder\tsynonym\t\n"
        "older\tQuercula\tgenus\t\t\tg\tsynonym\t\n"
        "f\tFagaceae\tfamily\t\t\t\t\t\n"
        "v\tQuercus robur alba\tvariety\t\tQuercus pedunculata\t\t\t\n",
    )
    assert (report.made, report.known, report.skipped) == (4, 0, [])
    assert taxa(library) == {
        "Quercus robur": ("species", "Quercus", ["Quercus pedunculata"], ["oak"], None),
        "Quercus": ("genus", "Fagaceae", ["Quercella", "Quercula"], [], None),
        "Fagaceae": ("family", None, [], [], None),
        "Quercus robur alba": ("variety", "Quercus robur", [], [], None),
    }


@pytest.mark.parametrize("folder", ["", "backbone/"])
@pytest.mark.parametrize("encoding", ["UTF-8", "iso-8859-1"])
def test_an_archive(place, folder, encoding):
    library, _ = place
    meta = META.format(encoding=encoding, row="Taxon", file="taxon.txt")
    report = take(library, packed({f"{folder}meta.xml": meta, f"{folder}taxon.txt": ROWS.encode(encoding)}))
    assert (report.made, report.known, report.skipped) == (2, 0, [])
    assert taxa(library) == {
        "Quercus": ("genus", None, [], [], None),
        'Quercus "robur': ("species", "Quercus", ["Quercus pédonculé"], [], None),
    }


def test_a_file_on_disk(place, tmp_path):
    library, _ = place
    file = tmp_path / "taxa.csv"
    file.write_text("name\nQuercus\n")
    with library.write() as session:
        assert import_taxa(session, file, "ann").made == 1


@pytest.mark.parametrize(
    ("rows", "made", "skipped"),
    [
        (["a,,,,,", ",species,,,,"], {"a"}, {3: "the name must not be empty"}),
        (["a,,nobody,,,", "b,,a,,,", "c,,,,,"], {"c"}, {2: "nobody, is neither", 3: "a in line 2, was skipped"}),
        (["a,,b,,,", "b,,c,,,", "c,,b,,,", "d,,,,,"], {"d"}, {2: "skipped", 3: "back to it: b, c", 4: "lead back"}),
        (["a,,a,,,", "b,,,,,"], {"b"}, {2: "lead back to it: a"}),
        (["a,,,,,", "a,genus,,,,"], {"a"}, {3: "line 2 has the name a already"}),
        (["a,,,,,x12", "b,,,,,0", f"c,,,,,{2**63}", "d,,,,,٣"], set(), dict.fromkeys(range(2, 6), "is not a number")),
        (["a,,,,,,more", "b,,a,,,"], set(), {2: "it has 7 cells, the header 6", 3: "its parent, a, is neither"}),
        ([f"{'a' * 201},,,,,", f"b,{'r' * 51},,,,"], set(), {2: "201 characters long; at most 200", 3: "at most 50"}),
        (['"a\nb",,,,,', "c,,,,,"], {"c"}, {2: "one line of text"}),
        (['"a",,,"b\n",,', "c,,,x\x07,,"], {"a"}, {4: "the synonyms must be one line"}),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_is_said_and_the_rest_goes_on(place, rows, made, skipped):
    library, _ = place
    report = take(library, "\n".join(["name,rank,parent,synonyms,common_names,gbif_key", *rows]))
    assert set(taxa(library)) == made
    assert report.made == len(made)
    assert [line for line, _ in report.skipped] == list(skipped)
    for line, reason in report.skipped:
        assert skipped[line] in reason


def test_synonyms_of_nothing_and_keys_given_twice(place):
    library, _ = place
    report = take(
        library,
        "taxonID,scientificName,acceptedNameUsageID,taxonomicStatus,parentNameUsageID\n"
        "1,a,2,,\n2,b,1,,\n3,c,9,,\n4,d,,synonym,\n5,e,,,\n5,f,,,\n6,g,,,7\n8,h,6,synonym,\n9,i,,,4\n",
    )
    assert set(taxa(library)) == {"e"}
    assert dict(report.skipped) == {
        2: "it is a synonym, and the file has no row of the accepted name",
        3: "it is a synonym, and the file has no row of the accepted name",
        4: "the accepted taxon, i in line 10, was skipped",
        5: "it is a synonym, and the file has no row of the accepted name",
        7: "line 6 has the taxonID 5 already",
        8: "its parent, 7, is neither in the file nor in the taxonomy",
        9: "the accepted taxon, g in line 8, was skipped",
        10: "its parent, d in line 5, is a synonym of nothing",
    }


def test_what_is_there_is_filled_in_and_never_replaced(place):
    library, desk = place
    desk.make_taxon(NewTaxon("Quercus", "genus", gbif_key=7, synonyms=["A"]), "bob")
    desk.make_taxon(NewTaxon("Quercus robur"), "bob")
    report = take(
        library,
        "name,rank,parent,synonyms,common_names,gbif_key\n"
        "Quercus,tribe,,A|B,oaks,8\nQuercus robur,species,Quercus,,,9\n",
    )
    assert (report.made, report.known, report.skipped) == (0, 2, [])
    assert taxa(library) == {
        "Quercus": ("genus", None, ["A", "B"], ["oaks"], 7),
        "Quercus robur": ("species", "Quercus", [], [], 9),
    }
    with library.read() as session:
        events = session.scalars(select(Event).where(Event.who == "ann").order_by(Event.number)).all()
    assert [(event.kind, event.facts) for event in events] == [
        ("filled_in", {"synonyms": ["B"], "common_names": ["oaks"]}),
        ("placed", {"before": None, "after": 1}),
        ("filled_in", {"rank": "species", "gbif_key": 9}),
    ]


def test_a_circle_with_what_is_there(place):
    library, desk = place
    top = desk.make_taxon(NewTaxon("top"), "bob")
    desk.make_taxon(NewTaxon("below", parent=top.id), "bob")
    report = take(library, "name,rank,parent\ntop,genus,below\nother,,\n")
    assert [line for line, _ in report.skipped] == [2]
    assert "cannot be placed under itself" in report.skipped[0][1]
    assert taxa(library)["top"] == ("unranked", None, [], [], None)
    assert "other" in taxa(library)


def test_a_file_from_before_does_not_undo_a_merge(place):
    library, desk = place
    old, new = (desk.make_taxon(NewTaxon(name, "genus"), "bob").id for name in ("Aster", "Symphyotrichum"))
    desk.merge_taxa(old, new, "bob")
    report = take(library, "name,parent\nAster,\nAster novae-angliae,Aster\n")
    assert report.skipped[0] == (2, f"Aster is a synonym of Symphyotrichum, taxon {new}, here")
    report = take(library, "name,parent\nAster novae-angliae,Aster\n")
    assert taxa(library)["Aster novae-angliae"][1] == "Symphyotrichum"


def test_votes_are_counted_anew_below_a_new_parent(place):
    library, desk = place
    library.create_collection("c", "")
    desk.set_policy("c", rule="two_thirds", blind=False, random_share=0.0)
    numbers = [desk.make_taxon(NewTaxon(name, "species"), "bob").id for name in ("robur", "petraea")]
    with library.write() as session:
        collection = library.get_collection_id("c")
        known = {"predictions": [], "model": "m"}
        session.add(Observation(id=1, collection_id=collection, identification=known, doubt=1.0, sampled=False))
        session.flush()
        for who, taxon in zip(("ann", "bob"), numbers, strict=True):
            session.add(Vote(observation_id=1, who=who, kind="taxon", taxon_id=taxon))
    report = take(library, "name,rank,parent\nrobur,,Quercus\npetraea,,Quercus\nQuercus,genus,\n")
    assert report.touched == {collection}
    with library.read() as session:
        observation = session.get_one(Observation, 1)
        assert observation.status == "verified"
        assert session.get_one(Taxon, observation.taxon_id).name == "Quercus"


BOMB = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>'
GOOD = META.format(encoding="UTF-8", row="Taxon", file="taxon.txt")
BOMBED = GOOD.replace("?>", "?>" + BOMB, 1)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"", "no column name or scientificName"),
        (b"\xff\xd8\xff\xe0 a picture", "cannot be read"),
        (b"species\nQuercus\n", "no column name or scientificName; accepted are"),
        (b"name,scientificName\na,b\n", "two columns of the table mean the name"),
        (b'name\n"a"b\n', "the table cannot be read"),
        (b"name\n" + b"a" * 200_000, "field larger than field limit"),
        (b"PK of an odd kind", "cannot be unpacked"),
        (packed({"a.txt": "name"}), "no meta.xml"),
        (packed({"meta.xml": "<archive"}), "not XML"),
        (packed({"meta.xml": "<archive/>"}), "core is not of taxa"),
        (packed({"meta.xml": GOOD.replace("/Taxon", "/Occurrence")}), "core is not of taxa"),
        (packed({"meta.xml": GOOD}), "names the file 'taxon.txt', which the archive does not hold"),
        (packed({"meta.xml": BOMBED, "taxon.txt": ROWS}), "has a DOCTYPE"),
        (packed({"meta.xml": BOMBED.replace("UTF-8", "UTF-16", 1).encode("utf-16")}), "has a DOCTYPE"),
        (packed({"meta.xml": " " * (1 << 21)}), "meta.xml is larger than 1 MB"),
        (packed({"meta.xml": GOOD.replace('="UTF-8" f', '="ebcdic" f'), "taxon.txt": ROWS}), "is 'ebcdic'"),
        (packed({"meta.xml": GOOD.replace('By="\\t"', 'By="||"'), "taxon.txt": ROWS}), "must be one character"),
        (packed({"meta.xml": GOOD.replace('index="2"', 'index="two"'), "taxon.txt": ROWS}), "must be a small number"),
        (packed({"meta.xml": GOOD.replace("scientificName", "x"), "taxon.txt": ROWS}), "no column name"),
        (packed({"meta.xml": GOOD, "taxon.txt": ROWS})[:-40], "cannot be unpacked"),
        (packed({"meta.xml": GOOD, "taxon.txt": b"id\n1\t\xff\n"}), "cannot be read"),
    ],
)  # fmt: skip
def test_files_of_another_kind(place, source, message):
    library, _ = place
    with pytest.raises(TaxonomyBroken, match=message):
        take(library, source)
    assert taxa(library) == {}


def test_a_table_that_is_too_large(place, monkeypatch):
    library, _ = place
    monkeypatch.setattr("serving.review.taxonomy_files.MOST_BYTES", 10)
    for source in (b"name\nQuercus\n", packed({"meta.xml": GOOD, "taxon.txt": ROWS})):
        with pytest.raises(TaxonomyBroken, match="import it in parts"):
            take(library, source)


def test_a_long_line_of_parents_and_many_rows(place):
    library, _ = place
    rows = [f"t{number},,{f't{number + 1}' if number < 2999 else ''}" for number in range(3000)]
    began = time.perf_counter()
    assert take(library, "\n".join(["name,rank,parent", *rows])).made == 3000
    assert time.perf_counter() - began < 60
    assert taxa(library)["t0"][1] == "t1"


letters = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="|")
names = st.text(letters, min_size=1, max_size=8).map(lambda text: normalize("NFC", text).strip()).filter(bool)


@given(st.data(), st.lists(names, min_size=1, max_size=8, unique=True), st.sampled_from(",\t;"))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_written_is_read(place, data, chosen, delimiter):
    """Any tree under any names comes back as it was, whatever the order of the rows."""
    library, _ = place
    parents = [data.draw(st.sampled_from(["", *chosen[:place]])) for place in range(len(chosen))]
    others = [data.draw(st.lists(names, max_size=2, unique=True)) for _ in chosen]
    rows = data.draw(st.permutations(list(zip(chosen, parents, others, strict=True))))
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(["name", "parent", "common_names"])
    writer.writerows([name, parent, "|".join(other)] for name, parent, other in rows)

    with library.read() as session:  # never committed: the next example finds the database empty
        report = import_taxa(session, text.getvalue().encode(), "ann")
        found = {taxon.id: taxon for taxon in session.scalars(select(Taxon))}
        assert (report.made, report.skipped) == (len(chosen), [])
        above = {each.name: found[each.parent_id].name if each.parent_id else "" for each in found.values()}
        assert above == dict(zip(chosen, parents, strict=True))
        assert {each.name: each.common_names for each in found.values()} == dict(zip(chosen, others, strict=True))
