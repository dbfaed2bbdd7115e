import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from serving.schemas import ClassifyResponse, ModelInfo
from ui import classify_result

MODEL = ModelInfo(
    name="trees", version=1, task="classify", title="Trees", sha256="0" * 64, labels=["ash", "<elm>", "oak"],
    unsure_below=0.6, metrics={}, training_data=[], licence="", runtime="onnx", versions=[1],
)  # fmt: skip


def answer(probability=0.91, *, unsure=False, heat=True):
    return ClassifyResponse.model_validate(
        {
            "image": {"width": 200, "height": 100},
            "predictions": [
                {"label": "<elm>", "probability": probability},
                {"label": "oak", "probability": 0.001},
            ],
            "unsure": unsure,
            "model": {"name": "trees", "version": 1, "sha256": "0" * 64},
            "heatmap": {
                "label": "<elm>",
                "region": {"left": 50, "top": 0, "width": 100, "height": 100},
                "values": [[0.0, 0.5], [1.0, 0.25]],
            }
            if heat
            else None,
        }
    )


def test_an_answer_says_what_its_probability_means():
    shown = classify_result.show(answer(), MODEL, "gradio_api/file=a.jpg")
    assert "<h2>&lt;elm&gt;</h2>" in shown
    assert "about 91 are right" in shown
    assert "<b>91%</b>" in shown
    assert "<b>&lt; 1%</b>" in shown
    assert "<elm>" not in shown


def test_a_doubtful_answer_says_so():
    shown = classify_result.show(answer(0.4, unsure=True), MODEL, "a.jpg")
    assert "<h2>Unsure; perhaps &lt;elm&gt;</h2>" in shown
    assert "none of the 3 kinds" in shown


def test_the_map_lies_over_its_part_of_the_picture():
    shown = classify_result.show(answer(), MODEL, "a.jpg")
    assert "left:25.000%;top:0.000%;width:50.000%;height:100.000%" in shown
    [data] = re.findall(r"data:image/png;base64,([^\"]+)", shown)
    alpha = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))[..., 3]
    assert alpha.tolist() == [[0, 100], [200, 50]]


def test_no_map_where_there_is_none():
    assert "rl-looked" not in classify_result.show(answer(heat=False), MODEL, "a.jpg")


@pytest.mark.parametrize("words", ["3 kinds and nothing else", "&lt;elm&gt;"])
def test_an_invitation_says_what_is_known(words):
    assert words in classify_result.invite(MODEL)


def test_a_refusal_is_a_sentence():
    assert "The image is broken." in classify_result.refusal("the image is broken")
