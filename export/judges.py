"""How versions of a model are measured, task by task: which pictures, what is asked, what an answer is worth."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from serving.answering import RECOGNIZER
from serving.images import ImageLimits
from serving.manifest import ClassifierManifest, EmbedderManifest
from serving.pipelines.classify import Classifier
from serving.pipelines.detect import Detector
from serving.pipelines.embed import Embedder
from serving.pipelines.read import Reader
from serving.pipelines.recognize import Recognizer
from serving.pipelines.upload import Upload
from serving.repository import StoredModel, manifest_as
from serving.runtime import Runtime
from serving.timing import Timings
from training.data.labelled import LabelledFile, read_labels
from training.errors import DataError
from training.metrics.classification import reliability_of

Floats = NDArray[np.float64]
UNSEEN = "val_unseen_class"
NO_LIMITS = ImageLimits(max_bytes=1 << 40, max_pixels=1 << 40)


@dataclass(frozen=True)
class Workplace:
    """What a model is run with."""

    runtime: Runtime
    workers: Executor
    in_use: Callable[[str], StoredModel]  # the version of another model that the service answers with


class Judge(Protocol):
    """Of one task. Models have learned from pictures of the set `train`, so these are left out."""

    def pictures(self, folders: Sequence[Path]) -> list[Any]:
        """All pictures with their labels; raises DataError if there is none."""
        ...

    def comparable(self, pictures: Sequence[Any]) -> list[Any]:
        """Those of a few pictures of which something can be said."""
        return list(pictures)

    def open(self, place: Workplace, model: StoredModel) -> Callable[[Any], Any]:
        """What asks a version about one picture, as the service would."""
        ...

    def rows(self, looks: Sequence[Any], pictures: Sequence[Any]) -> Floats:
        """What each answer is worth, [N, …], for `figures`."""
        ...

    def figures(self, rows: Floats) -> dict[str, float]:
        """Of all answers together; the first decides, and more of it is better."""
        ...


class JudgeEmbedders(Judge):
    """Is the nearest other picture of the same class?"""

    def pictures(self, folders: Sequence[Path]) -> list[LabelledFile]:
        """Labelled pictures whose class has another one."""
        return self.comparable(_of_classes(folders))

    def comparable(self, pictures: Sequence[LabelledFile]) -> list[LabelledFile]:
        """Those whose class has another one."""
        counts = Counter(file.class_name for file in pictures)
        kept = [file for file in pictures if counts[file.class_name] > 1]
        if not kept:
            raise DataError("no class has two pictures for validation, so none can be another's neighbour; take more")
        return kept

    def open(self, place: Workplace, model: StoredModel) -> Callable[[LabelledFile], NDArray[np.float32]]:
        """Its vector."""
        manifest = manifest_as(model, EmbedderManifest)
        embedder = Embedder(place.runtime.load(model), manifest, NO_LIMITS, place.workers)
        return lambda file: embedder.embed_one(_upload(file.path))

    def rows(self, looks: Sequence[NDArray[np.float32]], pictures: Sequence[LabelledFile]) -> Floats:
        """Hit, and precision among as many neighbours as there are others of its class."""
        vectors = np.stack(looks)
        _, labels = np.unique([file.class_name for file in pictures], return_inverse=True)
        similarities = vectors @ vectors.T
        np.fill_diagonal(similarities, -np.inf)
        order = np.argsort(-similarities, axis=1, kind="stable")
        same = labels[order] == labels[:, None]
        others = np.bincount(labels)[labels] - 1
        among = np.array([hits[:count].mean() for hits, count in zip(same, others, strict=True)])
        return np.stack([same[:, 0].astype(float), among], axis=1)

    def figures(self, rows: Floats) -> dict[str, float]:
        """r@1 and precision at R."""
        return {"r@1": float(rows[:, 0].mean()), "precision at R": float(rows[:, 1].mean())}


class JudgeClassifiers(Judge):
    """Is the most probable label right, and is that known?"""

    def pictures(self, folders: Sequence[Path]) -> list[LabelledFile]:
        """Labelled pictures, but of classes that were kept from every training."""
        return [file for file in _of_classes(folders) if file.set_name != UNSEEN]

    def open(self, place: Workplace, model: StoredModel) -> Callable[[LabelledFile], tuple[str, float]]:
        """Its best label, and how sure it is."""
        manifest = manifest_as(model, ClassifierManifest)
        classifier = Classifier(place.runtime.load(model), manifest, NO_LIMITS, place.workers)
        return lambda file: classifier.classify(_upload(file.path), Timings()).ranking[0]

    def rows(self, looks: Sequence[tuple[str, float]], pictures: Sequence[LabelledFile]) -> Floats:
        """Right, and how sure; a label that a version does not know it cannot get right."""
        pairs = zip(looks, pictures, strict=True)
        return np.array([[float(label == file.class_name), sure] for (label, sure), file in pairs])

    def figures(self, rows: Floats) -> dict[str, float]:
        """Accuracy, and the error of its confidence."""
        error = reliability_of(rows[:, 1], rows[:, 0] > 0).ece
        return {"accuracy": float(rows[:, 0].mean()), "calibration error": error}


class JudgeRecognizers(Judge):
    """Is the word read, on [0-9a-z]?"""

    def pictures(self, folders: Sequence[Path]) -> list[Any]:
        """Crops of words."""
        from training.data.words import read_words

        return _for_validation([crop for folder in folders for crop in read_words(folder)])

    def open(self, place: Workplace, model: StoredModel) -> Callable[[Any], str]:
        """What it reads."""
        recognizer = Recognizer(place.runtime.load(model), model, NO_LIMITS, place.workers)
        return lambda crop: asyncio.run(recognizer.read([crop.load()], Timings()))[0].text

    def rows(self, looks: Sequence[str], pictures: Sequence[Any]) -> Floats:
        """Edit distance to the truth."""
        from training.metrics.edit_distance import alphanumeric_only, edit_distances

        readings = [alphanumeric_only(text) for text in looks]
        truths = [alphanumeric_only(crop.text) for crop in pictures]
        return edit_distances(readings, truths).astype(np.float64)[:, None]

    def figures(self, rows: Floats) -> dict[str, float]:
        """Accuracy, and mistakes a word."""
        return {"accuracy": float((rows[:, 0] == 0).mean()), "edit distance a word": float(rows[:, 0].mean())}


class JudgeDetectors(Judge):
    """Are words found, and can the recogniser in use read what was found?"""

    def pictures(self, folders: Sequence[Path]) -> list[Any]:
        """Photographs with their words."""
        from training.data.scenes import read_scenes

        return _for_validation([scene for folder in folders for scene in read_scenes(folder)])

    def open(self, place: Workplace, model: StoredModel) -> Callable[[Any], Any]:
        """The words that it leads to."""
        reads = place.in_use(RECOGNIZER)
        recognizer = Recognizer(place.runtime.load(reads), reads, NO_LIMITS, place.workers)
        reader = Reader(Detector(place.runtime.load(model), model), recognizer, NO_LIMITS, place.workers)
        return lambda scene: asyncio.run(reader.read(scene.load(), Timings())).words

    def rows(self, looks: Sequence[Any], pictures: Sequence[Any]) -> Floats:
        """Of each photograph: right, found and true words, of reading and of finding."""
        from training.metrics.text_detection import detection_counts, end_to_end_counts

        rows = []
        for words, scene in zip(looks, pictures, strict=True):
            quads = np.stack([word.polygon for word in words]) if words else np.zeros((0, 4, 2))
            ignored = scene.ignored.tolist()
            read = end_to_end_counts(quads, [word.text for word in words], scene.quads, scene.texts, ignored)
            found = detection_counts(quads, scene.quads, ignored)
            rows.append([*astuple(read), *astuple(found)])
        return np.array(rows, dtype=np.float64)

    def figures(self, rows: Floats) -> dict[str, float]:
        """F1 by the protocol of ICDAR'15."""
        from training.metrics.text_detection import Counts

        total = rows.sum(axis=0).astype(int).tolist()
        return {"end to end f1": Counts(*total[:3]).f1, "detection f1": Counts(*total[3:]).f1}


JUDGES: dict[str, type[Judge]] = {
    "embed": JudgeEmbedders,
    "classify": JudgeClassifiers,
    "recognize": JudgeRecognizers,
    "detect": JudgeDetectors,
}


def _of_classes(folders: Sequence[Path]) -> list[LabelledFile]:
    return _for_validation([file for folder in folders for file in read_labels(folder)])


def _for_validation(found: Sequence[Any]) -> list[Any]:
    kept = [each for each in found if each.set_name != "train"]
    if not kept:
        raise DataError("no picture in the data is for validation: all are of the set train, which models learn from")
    return kept


def _upload(path: Path) -> Upload:
    return Upload(path.name, path.read_bytes())
