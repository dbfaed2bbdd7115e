"""`readleaf evaluate detector`: what the service would find and read with a network that is not exported yet."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.progress import track

from export.reading import gather_as_served, reads_as_served
from serving.manifest import Thresholds
from training.evaluate_detector import DetectorFigures, best_score, evaluate_reading, validation_scenes
from training.finding import Found, best_threshold, detection_figures, maps_of
from training.models.detector import quads_of
from training.models.detectors import load_dense_detector

HEARTS = (0.3, 0.4, 0.5, 0.6, 0.7)
LOWEST, LEAST = 0.2, 0.5  # a word's score before its threshold is chosen, for the detector alone and for the service


def evaluate_detector(
    weights: str, folders: Sequence[Path], models: Path | None, turns: Sequence[int] = ()
) -> DetectorFigures:
    """Choose thresholds by F1, then measure the detector alone, and with the recogniser of `models` if given.

    Alone, a word's threshold is the best for finding; in the service a lower one is better, as what cannot be read is
    left out there.
    """
    model, scenes = load_dense_detector(weights), validation_scenes(folders)
    maps = [maps_of(model, scene.load()) for scene in track(scenes, description="finding words", transient=True)]
    best: tuple[Thresholds, dict[str, float]] | None = None
    for heart in HEARTS:
        gather = partial(gather_as_served, Thresholds(heart=heart, word=LOWEST))
        found = [Found(quads_of(boxes), scores) for boxes, scores in map(gather, maps)]
        threshold = best_threshold(scenes, found)
        figures = detection_figures(scenes, found, threshold)
        if best is None or figures["detection/f1"] > best[1]["detection/f1"]:
            best = Thresholds(heart=heart, word=round(threshold, 3)), figures
    assert best is not None
    thresholds, metrics = best
    if models is not None:
        with reads_as_served(model, Thresholds(heart=thresholds.heart, word=LEAST), models) as read:
            thresholds = Thresholds(heart=thresholds.heart, word=round(best_score(scenes, read), 3))
        with reads_as_served(model, thresholds, models) as read:
            metrics |= evaluate_reading(scenes, read, turns)
    return DetectorFigures(metrics, heart=thresholds.heart, word=thresholds.word)
