"""What was read or named, as the API says it: for its route, and for the command."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from serving.manifest import Manifest
from serving.pipelines.classify import Classified, Heat
from serving.pipelines.read import PageText
from serving.schemas import (
    ClassifyResponse,
    FoundLine,
    FoundWord,
    HeatMap,
    ImageSize,
    ModelRef,
    PictureRegion,
    Prediction,
    ReadResponse,
)


def read_response(page: PageText, models: Sequence[Manifest]) -> ReadResponse:
    """The answer that `models` found and read."""
    return ReadResponse(
        image=ImageSize(width=page.width, height=page.height),
        text=page.text,
        lines=[
            FoundLine(text=line.text, polygon=_points(line.polygon), words=list(line.words), block=line.block)
            for line in page.lines
        ],
        words=[
            FoundWord(
                text=word.text,
                confidence=round(word.confidence, 4),
                detection_confidence=round(word.detection_confidence, 4),
                polygon=_points(word.polygon),
                angle=round(word.angle, 1),
            )
            for word in page.words
        ],
        models=[ModelRef(name=model.name, version=model.version, sha256=model.sha256) for model in models],
    )


def classify_response(found: Classified, model: Manifest, top: int) -> ClassifyResponse:
    """The answer that `model` gave, its `top` best labels."""
    return ClassifyResponse(
        image=ImageSize(width=found.width, height=found.height),
        predictions=[Prediction(label=label, probability=round(value, 4)) for label, value in found.ranking[:top]],
        unsure=found.unsure,
        model=ModelRef(name=model.name, version=model.version, sha256=model.sha256),
        heatmap=None if found.heat is None else _heat_map(found.heat),
    )


def _heat_map(heat: Heat) -> HeatMap:
    return HeatMap(
        label=heat.label,
        region=PictureRegion(**heat.region._asdict()),
        values=[[round(value, 3) for value in row] for row in heat.values.tolist()],
    )


def _points(polygon: NDArray[np.float64]) -> list[tuple[float, float]]:
    return [(round(float(x), 1), round(float(y), 1)) for x, y in polygon]
