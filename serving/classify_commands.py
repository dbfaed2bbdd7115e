"""`readleaf classify`: says what pictures show on this machine, without a running service."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from serving.answers import classify_response
from serving.errors import PriorInvalid, ReadleafError
from serving.images import ImageLimits
from serving.manifest import ClassifierManifest
from serving.on_this_machine import models_in_use, opened, picture_files
from serving.pipelines.classify import Classified, Classifier, name_of
from serving.pipelines.priors import estimate_weights, parse_prior
from serving.pipelines.upload import Upload
from serving.repository import manifest_as
from serving.settings import Settings
from serving.timing import Timings

Write = Callable[[str], None]
Answer = TypeVar("Answer")


def classify_pictures(
    paths: Sequence[Path],
    settings: Settings,
    write: Write,
    *,
    model: str | None = None,
    prior: Path | None = None,
    estimate_from: Path | None = None,
    top: int = 3,
    as_json: bool = False,
) -> int:
    """Write a line for each picture; returns how many files were refused.

    `prior` is a file of weights, `estimate_from` a folder of pictures to learn them from; with no pictures to classify,
    what was learned is written instead.
    """
    known = models_in_use(settings)
    kinds = [name for name, each in known.items() if isinstance(each.manifest, ClassifierManifest)]
    chosen = name_of(kinds, model)
    with opened({chosen: known[chosen]}, settings) as (networks, workers):
        manifest = manifest_as(known[chosen], ClassifierManifest)
        classifier = Classifier(networks[chosen], manifest, ImageLimits.of(settings), workers)
        weights = _read_prior(prior, manifest.labels) if prior else {}
        look = _Look(workers, Console(stderr=True))
        if estimate_from is not None:
            answers = look("learning the prior", [estimate_from], partial(classifier.posterior, timings=Timings()))
            rows = [row for _, row in answers if row is not None]
            weights = _estimated(rows, manifest, estimate_from)
            if not paths:
                write(json.dumps(weights))
        classify = partial(classifier.classify, timings=Timings(), prior=weights)
        for file, found in look("classifying", paths, classify):
            if found is not None:
                write(_line(file, found, manifest, top, as_json=as_json))
        return look.refused


class _Look:
    """Does something with each picture on all cores, in order; files that cannot be read are named and counted."""

    def __init__(self, workers: Executor, progress: Console) -> None:
        self.refused = 0
        self._workers, self._progress = workers, progress

    def __call__(
        self, description: str, paths: Sequence[Path], ask: Callable[[Upload], Answer]
    ) -> Iterator[tuple[Path, Answer | None]]:
        """Each file as soon as it is done; None if it was refused."""

        def answer(file: Path) -> Answer | Exception:
            try:
                return ask(Upload(str(file), file.read_bytes()))
            except (ReadleafError, OSError) as error:
                return error

        files = list(picture_files(paths))
        found = zip(files, self._workers.map(answer, files), strict=True)
        for file, each in track(
            found, description, len(files), console=self._progress, transient=True, disable=len(files) < 2
        ):
            if isinstance(each, Exception):
                self.refused += 1
                self._progress.print(f"{file}: {each}", markup=False, highlight=False, soft_wrap=True)
                yield file, None
            else:
                yield file, each


def _read_prior(file: Path, labels: Sequence[str]) -> dict[str, float]:
    try:
        return parse_prior(file.read_text(encoding="utf-8"), labels)
    except UnicodeDecodeError as error:
        raise PriorInvalid(f"{file} is not a text in UTF-8; write label → weight as JSON into it") from error


def _estimated(rows: Sequence[NDArray[np.float64]], manifest: ClassifierManifest, folder: Path) -> dict[str, float]:
    """Weights that the pictures of a folder speak for."""
    if not rows:
        raise PriorInvalid(f"{folder} holds no picture that can be read; a prior is learned from some")
    weights = estimate_weights(np.stack(rows), np.array(manifest.prior))
    # Six digits, never 0: a weight is a number above 0.
    return {label: max(1e-6, round(float(weight), 6)) for label, weight in zip(manifest.labels, weights, strict=True)}


def _line(file: Path, found: Classified, manifest: ClassifierManifest, top: int, *, as_json: bool) -> str:
    if as_json:
        answer = classify_response(found, manifest, top).model_dump(mode="json", exclude_none=True)
        return json.dumps({"file": str(file), **answer})
    named = "\t".join(f"{label}\t{value:.2f}" for label, value in found.ranking[:top])
    return f"{file}\t{named}{chr(9) + 'unsure' if found.unsure else ''}"
