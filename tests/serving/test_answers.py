"""What was read, in the words of the API."""

import numpy as np

from serving.answers import read_response
from serving.manifest import read_manifest
from serving.pipelines.read import PageText, TextLine, Word
from serving.settings import Settings

SHIPPED = Settings.model_fields["models_dir"].default
QUAD = np.array([[10.04, 20.06], [50.0, 20.0], [50.0, 30.0], [10.0, 30.0]])


def test_numbers_are_short_and_nothing_is_lost():
    words = [Word("one", 0.123456, 0.98765, QUAD), Word("two", 1.0, 0.5, np.roll(QUAD + 100, 2, axis=0))]
    lines = [TextLine("two", QUAD + 100, (1,), 0), TextLine("one", QUAD, (0,), 1)]
    models = [read_manifest(SHIPPED / name / "1") for name in ("detector", "recognizer")]
    answer = read_response(PageText(640, 480, words, lines), models)
    assert answer.model_dump(mode="json") == {
        "image": {"width": 640, "height": 480},
        "text": "two\n\none",
        "lines": [
            {"text": "two", "polygon": [[110.0, 120.1], [150, 120], [150, 130], [110, 130]], "words": [1], "block": 0},
            {"text": "one", "polygon": [[10.0, 20.1], [50, 20], [50, 30], [10, 30]], "words": [0], "block": 1},
        ],
        "words": [
            {
                "text": "one",
                "confidence": 0.1235,
                "detection_confidence": 0.9877,
                "polygon": [[10.0, 20.1], [50, 20], [50, 30], [10, 30]],
                "angle": 0.0,
            },
            {
                "text": "two",
                "confidence": 1.0,
                "detection_confidence": 0.5,
                "polygon": [[150, 130], [110, 130], [110.0, 120.1], [150, 120]],
                "angle": 180.0,
            },
        ],
        "models": [{"name": model.name, "version": model.version, "sha256": model.sha256} for model in models],
    }


def test_an_empty_picture():
    answer = read_response(PageText(1, 1, [], []), [])
    assert (answer.text, answer.lines, answer.words, answer.models) == ("", [], [], [])
