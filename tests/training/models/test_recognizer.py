"""The four stages: what they are made of, that each combination learns, and that it exports as it is."""

import itertools
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from export.graph import write_graph
from export.parity import check_words
from export.words import Words
from training.alphabet import ALPHANUMERIC
from training.data.canvas import Canvas, place
from training.data.pixels import normalised
from training.errors import DataError
from training.models.recognizer import (
    THESIS,
    Recognizer,
    RecognizerShape,
    load_recognizer,
    published_recognizer,
    save_recognizer,
)
from training.reading import read_crops

WORDS = ["leaf", "read", "oak", "fern42", "moss", "ivy", "bee", "x9"]
STAGES = [
    dict(zip(("transformation", "features", "sequence", "prediction"), each, strict=True))
    for each in itertools.product(("none", "tps"), ("vgg", "resnet", "text"), ("none", "bilstm"), ("attention", "ctc"))
]
# Of 24 combinations, three in which every stage is there; all of them with --soak.
FEW = [8, 14, 17]


def crop(word: str) -> np.ndarray:
    """A word in plain letters: [32, 100, 3]."""
    picture = np.full((32, 100, 3), 235, dtype=np.uint8)
    cv2.putText(picture, word, (3, 23), cv2.FONT_HERSHEY_SIMPLEX, 0.75, (40, 20, 90), 2, cv2.LINE_AA)
    return picture


def small(**stages) -> RecognizerShape:
    """A thin network of these stages, quick to train."""
    text = stages["features"] == "text"
    canvas = Canvas(48, 160) if text else Canvas(32, 100, channels=1)
    return RecognizerShape(**stages, symbols=ALPHANUMERIC, feature_channels=64, steps=8, canvas=canvas)


def test_the_thesis_network_has_its_number_of_parameters():
    model = Recognizer(THESIS)
    assert sum(parameter.numel() for parameter in model.parameters()) == 49_555_182
    assert model(torch.zeros(1, 1, 32, 100)).shape == (1, 26, 37)


def test_the_thesis_network_learns_in_a_few_steps():
    torch.manual_seed(0)
    model = Recognizer(THESIS)
    optimizer = torch.optim.Adadelta(model.parameters(), rho=0.95, eps=1e-8)
    images = normalised(torch.from_numpy(np.stack([crop(word) for word in WORDS[:2]])))[:, :1]
    losses = []
    for _ in range(4):
        loss = model.loss(images, WORDS[:2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_every_combination_learns_eight_words_and_exports_as_it_is(rounds, tmp_path):
    chosen = range(len(STAGES)) if rounds(0, 1) else FEW
    for number in chosen:
        model = learn_words(small(**STAGES[number]))
        texts = [reading.text for reading in read_crops(model, [crop(word) for word in WORDS])]
        assert texts == WORDS, STAGES[number]
        canvas = model.shape.canvas
        wrapped, file = Words(model).eval(), tmp_path / f"{number}.onnx"
        write_graph(wrapped, (canvas.height, canvas.width, canvas.channels), "images", ("classes", "values"), file)
        check_words(wrapped, file, canvas.height, [canvas.width], max_batch=8, channels=canvas.channels)


def learn_words(shape: RecognizerShape) -> Recognizer:
    """Train until all words are read right.

    CTC on columns that see little may settle on writing a word's last letter into the empty columns after it, which
    look alike for all words; another start does not.
    """
    images = normalised(torch.from_numpy(np.stack([place(crop(word), shape.canvas) for word in WORDS])))
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        model = published_recognizer(shape) if shape.features == "text" else Recognizer(shape)
        if learn_by_heart(model, images):
            break
    return model.eval()


def learn_by_heart(model: Recognizer, images: torch.Tensor) -> bool:
    """Train for a while at most; says whether all words are read right."""
    if model.shape.features == "text":  # published weights: what stands on them is new
        model.features.requires_grad_(False)
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    bending = set(model.transformation.parameters())  # learns slowly, or it bends words out of sight
    groups = [
        {"params": [parameter for parameter in learned if parameter not in bending], "lr": 2e-3},
        {"params": [parameter for parameter in learned if parameter in bending], "lr": 2e-5},
    ]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], weight_decay=0)
    for step in range(400):
        loss = model.train().loss(images, WORDS)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 5)
        optimizer.step()
        if step % 10 == 9 and loss < 0.05:
            with torch.inference_mode():
                if [reading.text for reading in model.eval().read(model(images))] == WORDS:
                    return True
    return False


def test_a_checkpoint_is_what_was_saved(tmp_path):
    model = Recognizer(small(transformation="tps", features="vgg", sequence="bilstm", prediction="attention")).eval()
    save_recognizer(model, tmp_path / "best.pt")
    again = load_recognizer(str(tmp_path / "best.pt"))
    assert again.shape == model.shape
    images = torch.randn(2, 1, 32, 100)
    torch.testing.assert_close(again(images), model(images))


def test_published_weights_read(tmp_path):
    model = load_recognizer("published")
    readings = read_crops(model, [crop("Read42"), np.rot90(crop("sideways")), np.rot90(crop("sideways"), 3)])
    assert [reading.text for reading in readings] == ["Read42", "sideways", "sideways"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": "eyes"}, "features is 'eyes'; it must be one of vgg, resnet, text"),
        ({"prediction": "guess"}, "prediction is 'guess'"),
        ({"transformation": "tps", "canvas": Canvas(step=80)}, "set its step to 0"),
        ({"canvas": Canvas(32, 100)}, "height 48"),
    ],
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(DataError, match=message):
        replace(RecognizerShape(), **changes)


def test_what_is_no_checkpoint(tmp_path):
    with pytest.raises(DataError, match="there is no checkpoint"):
        load_recognizer(str(tmp_path / "none.pt"))
    (tmp_path / "bad.pt").write_bytes(b"no weights")
    with pytest.raises(DataError, match="not a checkpoint of the recogniser"):
        load_recognizer(str(tmp_path / "bad.pt"))
    with pytest.raises(DataError, match="published weights are for features text"):
        published_recognizer(small(transformation="none", features="vgg", sequence="none", prediction="ctc"))
