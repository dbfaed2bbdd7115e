"""Identify, observe, review, vote, undo, and the taxonomy, over HTTP."""

import io
import zipfile

import httpx
import pytest

ANN, BOB = {"X-Reviewer": "Ann"}, {"X-Reviewer": "B%C3%B6b"}


@pytest.fixture(scope="module")
def http(service, kinds, encoded):
    """A collection named garden with three kinds, six pictures each."""
    service.client.create_collection("garden")
    for kind, label in enumerate(("oak", "elm", "ash")):
        for number in range(6):
            service.client.add_item("garden", encoded(kinds(kind, number)), label)
    return service.http


@pytest.fixture
def picture(kinds, encoded):
    """A picture that nobody has sent yet: `picture(2)` shows an ash."""
    made = iter(range(100_000))

    def make(kind=0):
        quality = 60 + next(made) % 35
        return encoded(kinds(kind, 6 + next(made) % 6), "JPEG", quality=quality)

    return make


def send(http, *pictures, **form):
    files = [("images", ("a.jpg", data)) for data in pictures]
    return http.post("/v1/observations", files=files, data={"collection": "garden", **form})


def lease_of(http, number, who=ANN):
    """Skip everything else until this one comes."""
    skip = []
    while True:
        answer = http.post("/v1/review/next", json={"collection": "garden", "skip": skip}, headers=who)
        assert answer.status_code == 200, answer.text
        found = answer.json()["observation"]["id"]
        if found == number:
            return answer.json()
        skip.append(found)


def test_identify(http, picture):
    files = [("images", ("a.jpg", picture(1))), ("images", ("b.jpg", picture(1)))]
    answer = http.post("/v1/collections/garden/identify", files=files)
    assert answer.status_code == 200
    first = answer.json()["predictions"][0]
    assert (first["label"], first["classifier"]) == ("elm", None)
    assert 0.4 < first["score"] <= 1
    assert [each["label"] for each in first["evidence"]] == ["elm"] * 3
    assert http.get(first["evidence"][0]["thumbnail_url"]).status_code == 200
    assert answer.json()["models"][0]["name"] == "embedder"
    assert [model["name"] for model in answer.json()["models"]] == ["embedder"]


def test_a_prior_changes_what_is_likely(http, photo, encoded):
    files = [("images", ("a.jpg", encoded(photo(90, 70, seed=4))))]
    before = http.post("/v1/collections/garden/identify", files=files).json()["predictions"]
    last = before[-1]["label"]
    after = http.post("/v1/collections/garden/identify", files=files, data={"prior": f'{{"{last}": 1000}}'})
    assert after.json()["predictions"][0]["label"] == last
    for prior in ('{"palm": 2}', '{"oak": 0}', "x", "{}"):
        answer = http.post("/v1/collections/garden/identify", files=files, data={"prior": prior})
        assert (answer.status_code, answer.json()["type"]) == (422, "urn:readleaf:problem:prior-invalid")


def test_an_empty_collection_says_so(http, picture):
    http.post("/v1/collections", json={"name": "bare"})
    answer = http.post("/v1/collections/bare/identify", files=[("images", ("a.jpg", picture()))])
    assert answer.status_code == 200
    assert answer.json()["rejected"]
    assert "nothing here" in answer.json()["reason"]


@pytest.mark.parametrize(
    ("count", "form", "status"),
    [
        (0, {}, 422),
        (6, {}, 422),
        (1, {"collection": "nowhere"}, 404),
        (1, {"observed": "yesterday"}, 422),
        (1, {"latitude": "91"}, 422),
        (1, {"longitude": "nan"}, 422),
        (2, {"organs": "leaf"}, 422),
        (1, {"organs": "wing"}, 422),
        (1, {"notes": "x" * 5001}, 422),
    ],
)
def test_what_is_no_observation(http, picture, count, form, status):
    answer = send(http, *(picture() for _ in range(count)), **form)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_broken_picture_leaves_nothing(http, picture):
    before = http.get("/v1/observations", params={"limit": 200}).json()["observations"]
    answer = send(http, picture(), b"no picture")
    assert answer.status_code == 415
    assert "images[1]" in answer.json()["detail"]
    assert http.get("/v1/observations", params={"limit": 200}).json()["observations"] == before


def test_from_a_picture_to_the_index_and_back(http, picture):
    data = picture(2)
    sent = send(
        http, data, organs="leaf", observed="2026-05-14", latitude=48.2, longitude=16.4, place="Wien", observer="Eva"
    )
    assert sent.status_code == 201
    made = sent.json()
    assert (made["status"], made["place"], made["images"][0]["organ"]) == ("needs_review", "Wien", "leaf")
    assert made["identification"]["predictions"][0]["taxon"]["name"] == "ash"
    assert http.get(made["images"][0]["image_url"]).content == data
    number = made["id"]
    refused = http.post(f"/v1/observations/{number}/votes", json={"kind": "cannot_tell"}, headers=ANN)
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:readleaf:problem:lease-missing")
    shown = lease_of(http, number)
    assert shown["observation"]["lease"]["who"] == "Ann"
    assert shown["waiting"] >= 1
    ash = made["identification"]["predictions"][0]["taxon"]["id"]
    body = {"kind": "taxon", "taxon_id": ash, "comment": "leaflets"}
    voted = http.post(f"/v1/observations/{number}/votes", json=body, headers=ANN).json()
    assert (voted["status"], voted["taxon"]["name"], voted["votes"][0]["comment"]) == ("verified", "ash", "leaflets")

    def nearest():
        files = {"image": ("a.jpg", data)}
        return http.post("/v1/collections/garden/search", files=files, data={"k": 1}).json()["neighbours"][0]

    assert nearest()["score"] == pytest.approx(1)
    assert nearest()["item"] == voted["images"][0]["item"]
    undone = http.post(f"/v1/observations/{number}/undo", headers=ANN).json()
    assert (undone["status"], undone["lease"]["who"]) == ("needs_review", "Ann")
    assert nearest()["item"] != voted["images"][0]["item"]
    assert http.post(f"/v1/observations/{number}/undo", headers=BOB).status_code == 404
    assert http.delete(f"/v1/observations/{number}/lease", headers=ANN).status_code == 204
    assert http.delete(f"/v1/observations/{number}/lease", headers=ANN).status_code == 409
    assert http.get(f"/v1/observations/{number}").json()["lease"] is None


def test_names_in_any_script(http, picture):
    number = send(http, picture()).json()["id"]
    assert lease_of(http, number, BOB)["observation"]["lease"]["who"] == "Böb"
    answer = http.put(f"/v1/observations/{number}/lease", headers=BOB)
    assert answer.json()["lease"]["who"] == "Böb"


def test_who_votes_must_have_a_name(http):
    answer = http.post("/v1/review/next", json={"collection": "garden"})
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:readleaf:problem:reviewer-unnamed")


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "taxon"},
        {"kind": "new_taxon"},
        {"kind": "cannot_tell", "taxon_id": 1},
        {"kind": "taxon", "taxon_id": 1, "name": "x"},
        {"kind": "guess"},
        {"kind": "new_taxon", "name": " "},
        {"kind": "taxon", "taxon_id": 1, "extra": 1},
    ],
)
def test_what_is_no_vote(http, picture, body):
    number = send(http, picture()).json()["id"]
    answer = http.post(f"/v1/observations/{number}/votes", json=body, headers=ANN)
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:readleaf:problem:request-invalid")


def test_an_unknown_taxon_keeps_the_lease(http, picture):
    number = send(http, picture()).json()["id"]
    lease_of(http, number)
    answer = http.post(f"/v1/observations/{number}/votes", json={"kind": "taxon", "taxon_id": 9999}, headers=ANN)
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:readleaf:problem:taxon-missing")
    assert http.get(f"/v1/observations/{number}").json()["lease"]["who"] == "Ann"


def test_blind_review_hides_what_others_and_models_say(http, picture):
    policy = {"rule": "two_thirds", "blind": True, "random_share": 0.0}
    assert http.put("/v1/collections/garden/policy", json=policy).json() == policy
    try:
        number = send(http, picture(1)).json()["id"]
        lease_of(http, number)
        body = {"kind": "new_taxon", "name": "Ulmus", "rank": "genus", "comment": "rough leaves"}
        voted = http.post(f"/v1/observations/{number}/votes", json=body, headers=ANN).json()
        assert voted["identification"] is not None
        shown = lease_of(http, number, BOB)["observation"]
        assert (shown["identification"], shown["votes"]) == (None, [])
        assert "rough leaves" not in str(shown)
        body = {"kind": "taxon", "taxon_id": voted["votes"][0]["taxon"]["id"]}
        voted = http.post(f"/v1/observations/{number}/votes", json=body, headers=BOB).json()
        assert (voted["status"], voted["taxon"]["name"]) == ("verified", "Ulmus")
        assert len(voted["votes"]) == 2
    finally:
        http.put("/v1/collections/garden/policy", json={})
    assert http.get("/v1/collections/garden/policy").json()["rule"] == "one_expert"


def test_nothing_waits(http):
    http.post("/v1/collections", json={"name": "quiet"})
    answer = http.post("/v1/review/next", json={"collection": "quiet"}, headers=ANN)
    assert (answer.status_code, answer.content) == (204, b"")
    assert http.post("/v1/review/next", json={"collection": "none"}, headers=ANN).status_code == 404


def test_pages_of_observations(http, picture):
    made = [send(http, picture()).json()["id"] for _ in range(3)]
    page = http.get("/v1/observations", params={"cursor": made[0] - 1, "limit": 2, "collection": "garden"}).json()
    assert [each["id"] for each in page["observations"]] == made[:2]
    page = http.get("/v1/observations", params={"cursor": page["next_cursor"], "status": "needs_review"}).json()
    assert [each["id"] for each in page["observations"]] == made[2:]
    assert page["next_cursor"] is None


def test_what_is_not_there(http):
    for path in ("", "/images/1", "/images/1/thumbnail"):
        answer = http.get(f"/v1/observations/99999{path}")
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:readleaf:problem:observation-missing")


def test_a_picture_that_is_not_there(http, picture):
    number = send(http, picture()).json()["id"]
    answer = http.get(f"/v1/observations/{number}/images/2")
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:readleaf:problem:picture-missing")


def test_the_taxonomy(http: httpx.Client):
    family = http.post("/v1/taxa", json={"name": "Fagaceae", "rank": "family", "gbif_key": 4689}).json()
    old = {"name": "Quercus pedunculata", "rank": "species", "parent": family["id"], "common_names": ["Stieleiche"]}
    taxon = http.post("/v1/taxa", json=old).json()
    assert http.post("/v1/taxa", json=old).status_code == 409
    renamed = http.post(f"/v1/taxa/{taxon['id']}/rename", json={"name": "Quercus robur"}).json()
    assert (renamed["name"], renamed["synonyms"]) == ("Quercus robur", ["Quercus pedunculata"])
    found = http.get("/v1/taxa", params={"name": "stieleiche"}).json()["taxa"]
    assert [each["id"] for each in found] == [taxon["id"]]
    other = http.post("/v1/taxa", json={"name": "Quercus fastigiata", "rank": "species"}).json()
    merged = http.post(f"/v1/taxa/{other['id']}/merge", json={"into": taxon["id"]}).json()
    assert "Quercus fastigiata" in merged["synonyms"]
    assert http.get(f"/v1/taxa/{other['id']}").json()["id"] == taxon["id"]
    assert http.post(f"/v1/taxa/{family['id']}/place", json={"parent": taxon["id"]}).status_code == 409
    parts = {"parts": [{"name": "Quercus robur"}, {"name": "Quercus nova"}]}
    made = http.post(f"/v1/taxa/{taxon['id']}/split", json=parts).json()
    assert [each["rank"] for each in made] == ["species", "species"]
    kinds = [event["kind"] for event in http.get(f"/v1/taxa/{taxon['id']}/history").json()]
    assert kinds == ["taxon_made", "renamed", "split"]
    assert http.get("/v1/taxa/99999").status_code == 404


def test_figures_and_exports(http, picture, tmp_path):
    data = picture()
    number = send(http, data, notes='on the "left"\tbank').json()["id"]
    lease_of(http, number)
    http.post(f"/v1/observations/{number}/votes", json={"kind": "new_taxon", "name": "Salix alba"}, headers=ANN)
    figures = http.get("/v1/review/figures", params={"collection": "garden"}).json()
    assert figures["statuses"]["verified"] >= 1
    assert figures["waiting"] == figures["statuses"]["needs_review"]
    assert {"predicted": "oak", "decided": "Salix alba", "count": 1} in figures["confusions"]
    for kind in ("dataset", "darwin-core"):
        answer = http.get(f"/v1/exports/{kind}", params={"collection": "garden"})
        assert answer.headers["content-type"] == "application/zip"
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.testzip() is None
            text = b"".join(archive.read(name) for name in archive.namelist() if name.endswith((".tsv", ".txt")))
        assert b"Salix alba" in text
        assert http.get(f"/v1/exports/{kind}", params={"collection": "none"}).status_code == 404
    assert http.get("/v1/review/figures", params={"collection": "none"}).status_code == 404


def test_a_taxonomy_is_imported(http):
    table = b"name,rank,parent\nSalicaceae,family,\nPopulus,genus,Salicaceae\n,genus,\n"
    answer = http.post("/v1/taxa/import", files={"file": ("taxa.csv", table)}).json()
    assert (answer["made"], [row["line"] for row in answer["skipped"]]) == (2, [4])
    genus, family = (
        http.get("/v1/taxa", params={"name": name}).json()["taxa"][0] for name in ("Populus", "Salicaceae")
    )
    assert genus["parent"] == family["id"]
    answer = http.post("/v1/taxa/import", files={"file": ("taxa.csv", b"\x00\x01")})
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:readleaf:problem:taxonomy-broken")
