"""/v1/classify: probabilities, priors, heat maps, and every way to ask wrongly."""

import json

import numpy as np
import pytest
from PIL import Image

from ui.samples import draw_samples


@pytest.fixture(scope="module")
def service(run_service, tmp_path_factory, trees_models):
    with run_service(tmp_path_factory.mktemp("classify"), models_dir=trees_models) as running:
        yield running


@pytest.fixture
def ask(service, encoded):
    def post(picture, form="JPEG", **fields):
        data = picture if isinstance(picture, bytes) else encoded(picture, form)
        return service.http.post("/v1/classify", files={"image": data}, data={"model": "trees", **fields})

    return post


@pytest.mark.parametrize(("kind", "label"), [(0, "ash"), (1, "elm"), (2, "oak")])
def test_a_picture_is_named(ask, kinds, kind, label):
    answer = ask(kinds(kind, 3)).json()
    assert answer["predictions"][0]["label"] == label
    assert answer["unsure"] is False
    assert answer["model"]["name"] == "trees"
    assert answer["image"] == {"width": 90, "height": 70}
    assert "heatmap" not in answer
    probabilities = [each["probability"] for each in answer["predictions"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1, abs=1e-3)


def test_what_it_does_not_know_is_unsure(ask):
    assert ask(Image.new("RGB", (80, 80), "white")).json()["unsure"] is True


def test_as_many_as_wanted(ask, kinds):
    assert len(ask(kinds(0, 0), top=2).json()["predictions"]) == 2
    assert len(ask(kinds(0, 0), top=1000).json()["predictions"]) == 3


def test_a_prior_moves_probabilities_as_bayes_says(ask, kinds):
    blend = Image.blend(kinds(0, 0), kinds(1, 0), 0.5)
    plain = {each["label"]: each["probability"] for each in ask(blend).json()["predictions"]}
    weights = {"elm": 4, "oak": 0.5}
    moved = {each["label"]: each["probability"] for each in ask(blend, prior=json.dumps(weights)).json()["predictions"]}
    expected = {label: value * weights.get(label, 1) for label, value in plain.items()}
    total = sum(expected.values())
    assert moved == pytest.approx({label: value / total for label, value in expected.items()}, abs=1e-3)


@pytest.mark.parametrize(("size", "region"), [((90, 70), (10, 0, 70, 70)), ((70, 200), (0, 65, 70, 70))])
def test_a_heat_map_lies_over_what_was_looked_at(ask, kinds, size, region):
    answer = ask(kinds(0, 0).resize(size), explain="true").json()
    heat = answer["heatmap"]
    assert heat["label"] == answer["predictions"][0]["label"]
    assert tuple(heat["region"].values()) == region
    values = np.array(heat["values"])
    assert values.shape == (2, 2)
    assert values.min() >= 0
    assert values.max() == 1


def test_a_sideways_photograph_is_upright(ask, kinds, encoded):
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = kinds(1, 0).transpose(Image.Transpose.ROTATE_90)
    answer = ask(encoded(turned, "JPEG", exif=exif, quality=95)).json()
    assert answer["image"] == {"width": 90, "height": 70}
    assert answer["predictions"][0]["label"] == "elm"


@pytest.mark.parametrize(
    ("fields", "status", "kind", "words"),
    [
        ({"model": "shrubs"}, 404, "model-missing", "no model named 'shrubs' classifies; there are "),
        ({"model": "embedder"}, 404, "model-missing", "no model named 'embedder' classifies"),
        ({"prior": "elm"}, 422, "prior-invalid", "the prior is not JSON"),
        ({"prior": '{"beech": 1}'}, 422, "prior-invalid", "the model has no label 'beech'"),
        ({"prior": '{"elm": 0}'}, 422, "prior-invalid", "the weight of 'elm' is 0"),
        ({"prior": '{"elm": -2}'}, 422, "prior-invalid", "the weight of 'elm' is -2"),
        ({"top": "0"}, 422, "request-invalid", "top"),
        ({"explain": "perhaps"}, 422, "request-invalid", "explain"),
    ],
)
def test_asked_wrongly(ask, kinds, fields, status, kind, words):
    answer = ask(kinds(0, 0), **fields)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"].endswith(kind)
    assert words in answer.json()["detail"]


@pytest.mark.parametrize(("data", "status"), [(b"", 422), (b"Dear all,", 415), (b"\xff\xd8\xff\xe0 broken", 415)])
def test_files_that_are_no_pictures(ask, data, status):
    assert ask(data).status_code == status


def test_a_bomb(ask, bomb):
    assert ask(bomb).json()["type"].endswith("image-too-large")


def test_the_client_and_the_list_of_models(service, kinds, encoded):
    answer = service.client.classify(encoded(kinds(2, 1)), model="trees", prior={"oak": 2.0}, top=1, explain=True)
    assert [each.label for each in answer.predictions] == ["oak"]
    assert answer.heatmap is not None
    [trees] = [each for each in service.client.models().models if each.name == "trees"]
    assert (trees.task, trees.labels, trees.unsure_below) == ("classify", ["ash", "elm", "oak"], 0.6)


@pytest.fixture(scope="module")
def sunflower(tmp_path_factory):
    return Image.open(draw_samples(tmp_path_factory.mktemp("samples"))["sunflower"]).convert("RGB")


def test_the_model_that_ships_answers_where_none_is_named(service, encoded, sunflower):
    answer = service.client.classify(encoded(sunflower))
    assert answer.model.name == "classifier"
    assert answer.predictions[0].label == "sunflower"
    assert len(answer.predictions) == 5


@pytest.mark.parametrize("left", [0, 240])
def test_it_is_warm_where_the_flower_is(service, encoded, sunflower, left):
    """A sunflower in one half of a grey picture."""
    picture = Image.new("RGB", (480, 480), (120, 125, 115))
    picture.paste(sunflower.resize((240, 240)), (left, 120))
    answer = service.client.classify(encoded(picture), prior={"sunflower": 1e6}, explain=True)
    assert answer.heatmap.label == "sunflower"
    halves = np.array(answer.heatmap.values)[:, [0, 1, -2, -1]].sum(axis=0).reshape(2, 2).sum(axis=1)
    assert halves.argmax() == left // 240
