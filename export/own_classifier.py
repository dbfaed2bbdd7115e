"""A classifier of one's own pictures in one go: from a folder, or a collection, to a model that is ready to serve."""

import shutil
from pathlib import Path

from rich.console import Console

from export.classifier import export_classifier
from export.evaluate_classifier import evaluate_classifier
from export.reliability_diagram import draw_reliability
from export.repository import replaced_folder
from serving.answering import DETECTOR, EMBEDDER, RECOGNIZER
from serving.client import Client
from serving.index_commands import export
from serving.manifest import NAME_PATTERN, ClassifierManifest
from serving.repository import versions_of
from training.classifier_data import classifier_data
from training.config import read_config
from training.errors import DataError
from training.models.classifier import load_classifier
from training.train_classifier import ClassifierTraining, train_classifier

CONFIG = Path(__file__).parents[1] / "training/configs/classifier_own.toml"


def train_own(
    data: Path,
    name: str,
    repository: Path,
    out: Path,
    changes: dict[str, str] | None = None,
    *,
    resume: bool = False,
    again: bool = False,
    skip_unreadable: bool = False,
) -> ClassifierManifest:
    """Train until it no longer gains, calibrate, measure, describe and export; the training is kept in `out`."""
    check_name(name, repository, again=again)
    config = read_config(ClassifierTraining, CONFIG, changes)
    classifier_data([data], config.sources, skip_unreadable=skip_unreadable)  # nothing is lost for data that cannot be
    if again and not resume:
        shutil.rmtree(out, ignore_errors=True)
    best = train_classifier(config, [data], out, resume=resume, skip_unreadable=skip_unreadable)
    model = load_classifier(str(best))
    figures = evaluate_classifier(model, [data], config.test_size, skip_unreadable=skip_unreadable).keep(str(best))
    draw_reliability({name: figures}, out / "reliability.png")
    return export_classifier(model, figures, repository, name)


def check_name(name: str, repository: Path, *, again: bool) -> None:
    """Raise DataError for a name that cannot be, or that is taken."""
    if not NAME_PATTERN.fullmatch(name):
        raise DataError(f"{name!r} cannot be a model's name: small letters, digits, - and _, beginning with a letter")
    if not (repository / name).exists():
        return
    versions = versions_of(repository / name)
    others = name in (EMBEDDER, DETECTOR, RECOGNIZER)  # even if none of its versions can be read
    if others or not all(isinstance(model.manifest, ClassifierManifest) for model in versions.good.values()):
        raise DataError(f"{repository / name} is a model that classifies nothing; choose another name")
    if not again:
        raise DataError(
            f"there is a model at {repository / name}; choose another name, or make it version {versions.newest + 1} "
            "with --again"
        )


def export_collection(url: str, collection: str, to: Path) -> Path:
    """Write a collection of a running service as a folder to train on, in place of one of an earlier time."""
    with replaced_folder(to) as new, Client(url) as client:
        export(client, collection, new, Console(stderr=True))
    return to
