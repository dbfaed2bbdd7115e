"""Collections, items and search, as an app uses them."""

import json
from uuid import uuid4

import pytest
from PIL import Image

PHOTOS = 6


@pytest.fixture(scope="module")
def http(run_service, tmp_path_factory):
    with run_service(tmp_path_factory.mktemp("data")) as service:
        yield service.http


@pytest.fixture
def collection(http, request):
    """An empty collection of the test's own."""
    name = f"{request.node.originalname} {uuid4().hex[:8]}"
    assert http.post("/v1/collections", json={"name": name}).status_code == 201
    return f"/v1/collections/{name}"


@pytest.fixture
def pictures(photo, encoded):
    return [encoded(photo(seed=seed)) for seed in range(PHOTOS)]


def add(http, collection, data, label=None, headers=None, **fields):
    form = {key: value for key, value in {"label": label, **fields}.items() if value is not None}
    return http.post(f"{collection}/items", files={"image": ("picture.jpg", data)}, data=form, headers=headers)


def search(http, collection, data, **fields):
    return http.post(f"{collection}/search", files={"image": ("query.jpg", data)}, data=fields)


def problem(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()["type"].rpartition(":")[2]


def test_add_search_relabel_delete(http, collection, pictures):
    items = [add(http, collection, data, label=f"kind {n % 2}").json() for n, data in enumerate(pictures)]
    found = search(http, collection, pictures[3], k=4).json()
    assert len(found["neighbours"]) == 4
    assert found["neighbours"][0]["item"] == items[3]["id"]
    assert found["neighbours"][0]["score"] == pytest.approx(1, abs=1e-4)
    assert [n["score"] for n in found["neighbours"]] == sorted((n["score"] for n in found["neighbours"]), reverse=True)
    assert sum(vote["score"] for vote in found["labels"]) == pytest.approx(1)
    assert sum(vote["votes"] for vote in found["labels"]) == 4
    assert not found["rejected"]

    changed = http.patch(f"{collection}/items/{items[3]['id']}", json={"label": "another"})
    assert changed.json()["label"] == "another"
    assert search(http, collection, pictures[3], k=1).json()["labels"][0]["label"] == "another"

    assert http.delete(f"{collection}/items/{items[3]['id']}").status_code == 204
    rest = search(http, collection, pictures[3], k=100).json()["neighbours"]
    assert items[3]["id"] not in [neighbour["item"] for neighbour in rest]
    assert len(rest) == PHOTOS - 1
    assert problem(http.get(f"{collection}/items/{items[3]['id']}")) == "item-missing"
    assert problem(http.get(items[3]["image_url"])) == "item-missing"


def test_only_items_of_a_label(http, collection, pictures):
    for number, data in enumerate(pictures):
        add(http, collection, data, label="odd" if number % 2 else "even")
    found = search(http, collection, pictures[0], label="odd").json()
    assert {neighbour["label"] for neighbour in found["neighbours"]} == {"odd"}
    assert len(found["neighbours"]) == 3
    none = search(http, collection, pictures[0], label="no such label").json()
    assert none["neighbours"] == []
    assert none["rejected"]


def test_what_a_collection_says_of_itself(http, collection, pictures):
    for number, data in enumerate(pictures):
        add(http, collection, data, label=["a", "b", None][number % 3 if number < 5 else 0])
    info = http.get(collection).json()
    assert info["items"] == 6
    assert info["labels"] == [{"label": "a", "items": 3}, {"label": "b", "items": 2}]
    assert info in http.get("/v1/collections").json()["collections"]


def test_pages(http, collection, pictures):
    ids = [add(http, collection, data, label="x" if n < 4 else "y").json()["id"] for n, data in enumerate(pictures)]
    seen, cursor = [], 0
    while cursor is not None:
        page = http.get(f"{collection}/items", params={"limit": 4, "cursor": cursor}).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert seen == ids
    labelled = http.get(f"{collection}/items", params={"label": "y"}).json()
    assert [item["id"] for item in labelled["items"]] == ids[4:]
    assert labelled["next_cursor"] is None


def test_the_picture_comes_back_as_it_was(http, collection, photo, encoded):
    turned = photo(400, 300).getexif()
    turned[0x0112] = 6
    data = encoded(photo(400, 300), exif=turned)
    item = add(http, collection, data, label="a", metadata=json.dumps({"place": "Prague"})).json()
    assert (item["width"], item["height"]) == (300, 400)
    assert item["metadata"] == {"place": "Prague"}
    image = http.get(item["image_url"])
    assert image.content == data
    assert image.headers["content-type"] == "image/jpeg"
    for _ in range(2):  # made, then kept
        small = http.get(item["thumbnail_url"])
        assert small.headers["content-type"] == "image/jpeg"
        assert len(small.content) < len(data)


def test_the_same_picture_twice(http, collection, pictures):
    first = add(http, collection, pictures[0], label="a").json()
    again = add(http, collection, pictures[0], label="b")
    assert again.status_code == 409
    assert problem(again) == "picture-exists"
    assert again.json()["item"] == first["id"]
    assert http.get(collection).json()["items"] == 1


def test_a_picture_of_two_collections_outlives_one(http, collection, pictures):
    other = http.post("/v1/collections", json={"name": "the other one"}).json()["name"]
    add(http, collection, pictures[0])
    kept = add(http, f"/v1/collections/{other}", pictures[0]).json()
    assert http.delete(collection).status_code == 204
    assert http.get(kept["image_url"]).content == pictures[0]


def test_an_idempotency_key_counts_once(http, collection, pictures):
    key = {"Idempotency-Key": "abc-1"}
    first, second = (add(http, collection, pictures[0], label="a", headers=key) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    other = add(http, collection, pictures[1], label="a", headers=key)
    assert (other.status_code, problem(other)) == (422, "idempotency-conflict")
    relabelled = add(http, collection, pictures[0], label="b", headers=key)
    assert problem(relabelled) == "idempotency-conflict"
    http.delete(f"{collection}/items/{first.json()['id']}")
    assert problem(add(http, collection, pictures[0], label="a", headers=key)) == "item-missing"


@pytest.mark.parametrize(
    "label", ["🌻", "Robert'); DROP TABLE items;--", "Ännchen von Tharau", "كلب", "x" * 200, "  padded  "]
)
def test_labels_of_all_kinds(http, collection, pictures, label):
    item = add(http, collection, pictures[0], label=label).json()
    assert item["label"] == label.strip()
    assert search(http, collection, pictures[0], label=label).json()["neighbours"][0]["item"] == item["id"]


@pytest.mark.parametrize("label", ["x" * 10_000, "two\nlines", "nul\0", "   "])
def test_labels_that_are_none(http, collection, pictures, label):
    answer = add(http, collection, pictures[0], label=label)
    assert (answer.status_code, problem(answer)) == (422, "request-invalid")
    assert "label" in answer.json()["detail"]
    assert http.get(collection).json()["items"] == 0


@pytest.mark.parametrize("k", ["0", "-1", "1000000000", "ten", "1.5"])
def test_impossible_k(http, collection, pictures, k):
    answer = search(http, collection, pictures[0], k=k)
    assert (answer.status_code, problem(answer)) == (422, "request-invalid")
    assert "k:" in answer.json()["detail"]


def test_an_empty_collection_has_no_answer_and_says_so(http, collection, pictures):
    found = search(http, collection, pictures[0])
    assert found.status_code == 200
    assert found.json()["neighbours"] == found.json()["labels"] == []
    assert found.json()["rejected"]
    assert "nothing here to compare" in found.json()["reason"]


def test_a_collection_that_is_not_there(http, pictures):
    missing = "/v1/collections/nowhere"
    answers = [http.get(missing), http.delete(missing), search(http, missing, pictures[0])]
    answers += [add(http, missing, pictures[0]), http.get(f"{missing}/items"), http.get(f"{missing}/items/1")]
    for answer in answers:
        assert (answer.status_code, problem(answer)) == (404, "collection-missing")


def test_names_of_collections(http):
    assert http.post("/v1/collections", json={"name": "flowers and leaves 🌿"}).status_code == 201
    taken = http.post("/v1/collections", json={"name": "flowers and leaves 🌿"})
    assert (taken.status_code, problem(taken)) == (409, "collection-exists")
    assert http.get("/v1/collections/flowers and leaves 🌿").json()["items"] == 0
    for name in ("", "  ", "a/b", "..", "x" * 101, 7, None):
        answer = http.post("/v1/collections", json={"name": name})
        assert (answer.status_code, problem(answer)) == (422, "request-invalid")
    assert problem(http.post("/v1/collections", json={"name": "ok", "extra": 1})) == "request-invalid"
    assert http.delete("/v1/collections/flowers and leaves 🌿").status_code == 204


@pytest.mark.parametrize(
    "metadata", ["not json", "[1]", '"text"', "{" + '"a": 1' * 5000, json.dumps({"a": "b" * 30_000})]
)
def test_bad_metadata(http, collection, pictures, metadata):
    answer = add(http, collection, pictures[0], metadata=metadata)
    assert (answer.status_code, problem(answer)) == (422, "request-invalid")
    assert "metadata" in answer.json()["detail"]


@pytest.mark.parametrize(
    "body", ['{"metadata": {"a": "\\ud800"}}', '{"metadata": {"a": 1e999}}', f'{{"metadata": {{"a": {2**70}}}}}']
)
def test_metadata_that_json_cannot_carry(http, collection, pictures, body):
    item = add(http, collection, pictures[0]).json()
    answer = http.patch(f"{collection}/items/{item['id']}", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 422)
    assert http.get(f"{collection}/items/{item['id']}").status_code == 200


def test_a_broken_picture_is_not_kept(http, collection, pictures):
    answer = add(http, collection, pictures[0][:-2000])
    assert problem(answer) == "image-broken"
    assert http.get(collection).json()["items"] == 0


def test_items_that_cannot_be(http, collection):
    assert problem(http.get(f"{collection}/items/1")) == "item-missing"
    for number in ("0", "-1", "x", str(2**70)):
        assert problem(http.get(f"{collection}/items/{number}")) == "request-invalid"
    assert problem(http.patch(f"{collection}/items/1", json={"label": "a"})) == "item-missing"
    assert problem(http.patch(f"{collection}/items/1", json={"lable": "a"})) == "request-invalid"


def test_a_label_can_be_taken_away(http, collection, pictures):
    item = add(http, collection, pictures[0], label="a", metadata='{"keep": true}').json()
    changed = http.patch(f"{collection}/items/{item['id']}", json={"label": None}).json()
    assert changed["label"] is None
    assert changed["metadata"] == {"keep": True}
    assert search(http, collection, pictures[0]).json()["labels"] == []


def test_a_part_of_a_picture_is_searched(http, collection, photo, encoded):
    """A turned photograph of two things side by side: each half finds its own thing."""
    things = [photo(300, 300, seed=seed) for seed in (1, 2)]
    items = [add(http, collection, encoded(thing, "PNG"), f"thing {n}").json()["id"] for n, thing in enumerate(things)]
    both = Image.new("RGB", (600, 300))
    both.paste(things[0], (0, 0))
    both.paste(things[1], (300, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # stored lying on its side; upright again when it is turned by a quarter
    sideways = encoded(both.transpose(Image.Transpose.ROTATE_90), "PNG", exif=exif)
    for item, region in zip(items, ("0,0,300,300", "300,0,300,300"), strict=True):
        best = search(http, collection, sideways, region=region).json()["neighbours"][0]
        assert best["item"] == item
        assert best["score"] > 0.999
    assert search(http, collection, sideways).json()["neighbours"][0]["score"] < 0.99


@pytest.mark.parametrize("region", ["", "1,2,3", "0,0,0,5", "-1,0,5,5", "0,0,5,5,5", "a,b,c,d", "0,0,1e3,1"])
def test_a_region_that_is_none(http, collection, pictures, region):
    answer = search(http, collection, pictures[0], region=region)
    if region == "":  # an empty field of a form counts as not given
        assert answer.status_code == 200
    else:
        assert answer.status_code == 422
        assert problem(answer) == "request-invalid"


def test_a_region_outside_the_picture(http, collection, pictures):
    answer = search(http, collection, pictures[0], region="250,0,100,100")
    assert answer.status_code == 422
    assert problem(answer) == "region-outside"
    assert "ends at 350,100, but image is 300×220 pixels" in answer.json()["detail"]
