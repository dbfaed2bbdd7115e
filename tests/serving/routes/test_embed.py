import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from export.embedder import export_embedder
from serving.settings import Settings
from training.data.labelled import load_pixels
from training.evaluate_embedder import EmbedderFigures
from training.models.embedder import load_embedder
from ui.samples import LEAVES, draw_leaf

SHIPPED = Settings.model_fields["models_dir"].default


@pytest.fixture(scope="module")
def pictures(photo, encoded):
    """32 different pictures of many sizes."""
    return [encoded(photo(150 + 20 * seed, 400 - 7 * seed, seed), "JPEG", quality=90) for seed in range(32)]


def test_32_pictures_are_unit_vectors_equal_to_torch(start_service, pictures, tmp_path):
    """From torch through the export and the service and back: the same vectors."""
    model = load_embedder("imagenet")
    scale = np.linspace(0, 1, 101).tolist()
    export_embedder(model, 224, EmbedderFigures({}, "", "nothing", scale, scale), tmp_path / "models")
    for name in ("detector", "recognizer"):
        shutil.copytree(SHIPPED / name, tmp_path / "models" / name)
    answer = start_service(models_dir=tmp_path / "models").client.embed(pictures)
    vectors = np.array(answer.embeddings)
    assert vectors.shape == (32, answer.dim)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    frames = []
    for number, data in enumerate(pictures):
        file = tmp_path / f"{number}.jpg"
        file.write_bytes(data)
        frames.append(load_pixels(file, 224, 224))
    with torch.inference_mode():
        images = torch.from_numpy(np.stack(frames)).permute(0, 3, 1, 2).float() / 127.5 - 1
        expected = model(images).numpy()
    np.testing.assert_allclose(vectors, expected, atol=1e-4)


def test_the_order_is_kept_and_neighbours_do_not_matter(service, pictures):
    together = np.array(service.client.embed(pictures).embeddings)
    for number in (0, 5, 31):
        alone = np.array(service.client.embed([pictures[number]]).embeddings[0])
        np.testing.assert_allclose(alone, together[number], atol=1e-5)


def test_a_smaller_copy_is_nearer_than_another_leaf(service, encoded):
    oak, willow = (draw_leaf(*LEAVES[name]) for name in ("oak-1", "willow"))
    pictures = [encoded(picture) for picture in (oak, oak.resize((200, 200)), willow)]
    original, copy, other = np.array(service.client.embed(pictures).embeddings)
    assert original @ copy > original @ other + 0.1


def test_the_answer_names_its_model(service, pictures):
    [info] = [one for one in service.client.models().models if one.task == "embed"]
    model = service.client.embed(pictures[:1]).model
    assert (model.name, model.version, model.sha256) == (info.name, info.version, info.sha256)


def refusal(service, files):
    answer = service.http.post("/v1/embed", files=files)
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code
    return answer.status_code, problem["type"].rsplit(":", 1)[1], problem["detail"]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("empty.jpg", b"", (422, "image-empty", "no bytes")),
        ("letter.jpg", b"Dear all,\n", (415, "image-format-unknown", "letter.jpg")),
        ("anim.gif", b"GIF89a" + bytes(40), (415, "image-format-unknown", "JPEG, PNG, WebP, BMP and TIFF")),
    ],
)
def test_what_is_no_picture(service, name, data, expected):
    status, kind, detail = refusal(service, {"images": (name, data)})
    assert (status, kind) == expected[:2]
    assert expected[2] in detail


def test_truncated_jpeg(service, pictures):
    status, kind, detail = refusal(service, {"images": ("half.jpg", pictures[0][: len(pictures[0]) // 2])})
    assert (status, kind) == (422, "image-broken")
    assert "image 1 (half.jpg) is a damaged JPEG file" in detail


def test_bomb(service, bomb):
    status, kind, detail = refusal(service, {"images": ("white.png", bomb)})
    assert (status, kind) == (413, "image-too-large")
    assert "50,000,000" in detail


def test_an_image_of_too_many_bytes(service):
    status, kind, detail = refusal(service, {"images": ("scan.tif", bytes(20_000_001))})
    assert (status, kind) == (413, "image-too-large")
    assert "20,000,001 bytes" in detail


def test_missing_field(service):
    status, kind, detail = refusal(service, {"picture": b"x"})
    assert (status, kind) == (422, "request-invalid")
    assert "images: Field required" in detail


def test_text_in_place_of_a_file(service):
    answer = service.http.post("/v1/embed", data={"images": "leaf.jpg"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith("images")


def test_65_images(service, pictures):
    status, kind, detail = refusal(service, [("images", pictures[0])] * 65)
    assert (status, kind) == (413, "too-many-images")
    assert "at most 64" in detail


def test_a_body_that_is_no_multipart(service):
    answer = service.http.post(
        "/v1/embed", content=b"nonsense", headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_first_bad_picture_is_the_one_named(service, pictures):
    files = [("images", ("good.jpg", data)) for data in pictures]
    files[9] = ("images", ("bad-9.jpg", b"x"))
    files[20] = ("images", ("bad-20.jpg", b"y"))
    assert "image 10 (bad-9.jpg)" in refusal(service, files)[2]


def test_overload_is_a_503_with_retry_after(start_service, pictures):
    service = start_service(max_running=1, max_waiting=1)

    def post(_):
        return service.http.post("/v1/embed", files=[("images", data) for data in pictures])

    with ThreadPoolExecutor(6) as clients:
        answers = list(clients.map(post, range(6)))
    statuses = sorted({answer.status_code for answer in answers})
    assert statuses == [200, 503]
    for answer in answers:
        if answer.status_code == 503:
            assert answer.headers["retry-after"] == "1"
            assert answer.json()["type"] == "urn:readleaf:problem:overloaded"
    assert post(0).status_code == 200
