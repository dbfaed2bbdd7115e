"""`readleaf evaluate …` and `readleaf export …`. Heavy parts are imported when a command runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from training.commands import (
    Changes,
    Config,
    DataFolders,
    Out,
    Resume,
    SceneFolders,
    SkipUnreadable,
    WordFolders,
    changes_of,
    train_app,
)

if TYPE_CHECKING:
    from training.comparison import Comparison

evaluate_app = typer.Typer(help="Score a model on validation data.", no_args_is_help=True)
export_app = typer.Typer(help="Turn a trained model into one that can be served.", no_args_is_help=True)
EMBEDDER_SIZE = 224
WIDEST_TABLE = 7  # columns; with more, a comparison is shown with a model a column
ComparisonFile = Annotated[Path | None, typer.Option(help="Write the comparison as Markdown, too.")]
Weights = Annotated[str, typer.Option(help="A checkpoint, or imagenet.")]
CardTable = Annotated[Path | None, typer.Option(help="A table in Markdown for the card.")]
CardNotes = Annotated[Path | None, typer.Option(help="Findings in Markdown for the card.")]
LanguageFile = Annotated[Path | None, typer.Option(help="A language to read with; `export language` makes one.")]
Grounds = Annotated[
    list[Path] | None, typer.Option(help="A folder of photographs without words, to draw scenes on; may be repeated.")
]
Repository = Annotated[Path, typer.Option(help="The model repository to write into.")]


@train_app.command("detector")
def train_detector(
    config: Config,
    data: SceneFolders,
    out: Out,
    grounds: Grounds = None,
    resume: Resume = False,
    change: Changes = None,
) -> None:
    """Train the detector on its proxy loss; Ctrl-C stops it, --resume goes on.

    It stands here and not beside the other trainings because validation finds words as the service does.
    """
    from functools import partial

    from export.reading import WHILE_TRAINING, gather_as_served
    from training.config import read_config
    from training.train_detector import DetectorTraining
    from training.train_detector import train_detector as train

    gather = partial(gather_as_served, WHILE_TRAINING)
    training = read_config(DetectorTraining, config, changes_of(change))
    best = train(training, data, out, gather, grounds=grounds or (), resume=resume)
    typer.echo(f"the best weights are in {best}")


@train_app.command("tune-detector")
def tune_detector(
    config: Config, data: SceneFolders, out: Out, grounds: Grounds = None, change: Changes = None
) -> None:
    """Tune a trained detector on a learned surrogate of rotated IoU (LS-IoU), on KFIoU, or go on with its proxy."""
    from functools import partial

    from export.reading import WHILE_TRAINING, gather_as_served
    from training.config import read_config
    from training.tune_detector import DetectorTuning
    from training.tune_detector import tune_detector as tune

    gather = partial(gather_as_served, WHILE_TRAINING)
    tuning = read_config(DetectorTuning, config, changes_of(change))
    typer.echo(f"the weights are in {tune(tuning, data, out, gather, grounds=grounds or ())}")


@train_app.command("classify")
def train_classify(
    name: Annotated[str, typer.Option(help="What the model is called: small letters, digits, - and _.")],
    data: Annotated[
        Path | None, typer.Option(help="A folder with one a class, or with labels.tsv.", exists=True, file_okay=False)
    ] = None,
    collection: Annotated[str | None, typer.Option(help="In place of --data: a collection of a service.")] = None,
    url: Annotated[str, typer.Option(help="Address of that service.", envvar="READLEAF_URL")] = "http://127.0.0.1:8000",
    to: Annotated[Path | None, typer.Option(help="The model repository (READLEAF_MODELS_DIR).")] = None,
    runs: Annotated[Path, typer.Option(help="Where the training is kept.")] = Path("runs"),
    resume: Resume = False,
    again: Annotated[
        bool, typer.Option("--again", help="Make the next version of a model of this name; the one before stays.")
    ] = False,
    skip_unreadable: SkipUnreadable = False,
    change: Changes = None,
) -> None:
    """Train a classifier of your own pictures in one go: trained, calibrated, measured, described, ready to serve."""
    from export.own_classifier import check_name, export_collection, train_own
    from serving.settings import load_settings

    if (data is None) == (collection is None):
        raise typer.BadParameter("give --data or --collection, one of them")
    repository = to or load_settings().models_dir
    check_name(name, repository, again=again)  # before it becomes a place on the disk
    out = runs / "own" / name
    if collection is not None:
        data = export_collection(url, collection, runs / "collections" / name)
    assert data is not None  # one of them was given
    manifest = train_own(
        data, name, repository, out, changes_of(change), resume=resume, again=again, skip_unreadable=skip_unreadable
    )
    right, unsure = manifest.metrics["val/accuracy"], manifest.unsure_below
    typer.echo(
        f"{len(manifest.labels)} classes, {right:.1%} of validation pictures right, unsure below {unsure:.0%}\n"
        f"wrote {repository / name}, version {manifest.version}; `readleaf models activate {name} {manifest.version}` "
        f"puts it into use in a running service; without one, `readleaf classify --model {name} PICTURE` does"
    )


@evaluate_app.command("classifier")
def evaluate_classifier(
    data: DataFolders,
    weights: Annotated[str, typer.Option(help="A checkpoint.")],
    size: Annotated[
        int | None, typer.Option(help="Pixels that pictures are scaled to; by default those of its training.", min=32)
    ] = None,
    diagram: Annotated[Path | None, typer.Option(help="Draw the reliability diagram into this PNG.")] = None,
    skip_unreadable: SkipUnreadable = False,
) -> None:
    """Accuracy, calibration and what a prior is worth, on validation pictures; the figures go to metrics.json."""
    from export.evaluate_classifier import evaluate_classifier as evaluate
    from export.evaluate_classifier import trained_size
    from export.reliability_diagram import draw_reliability
    from training.models.classifier import load_classifier

    side = size or trained_size(weights)
    figures = evaluate(load_classifier(weights), data, side, skip_unreadable=skip_unreadable).keep(weights)
    if diagram is not None:
        draw_reliability({Path(weights).parent.name: figures}, diagram)
    _show_metrics(figures.metrics)


@evaluate_app.command("embedder")
def evaluate_embedder(
    data: DataFolders,
    weights: Annotated[list[str], typer.Option(help="A checkpoint, or imagenet; may be repeated.")],
    table: ComparisonFile = None,
) -> None:
    """Nearest neighbours on validation pictures; the figures go to metrics.json beside each checkpoint."""
    from training.comparison import compare
    from training.evaluate_embedder import evaluate_embedder as evaluate
    from training.models.embedder import load_embedder

    rows = {}
    for each in weights:
        rows[each] = [evaluate(load_embedder(each), EMBEDDER_SIZE, data).keep(each).metrics]
    _show(compare(rows), table)


@evaluate_app.command("recognizer")
def evaluate_recognizer(
    data: WordFolders,
    weights: Annotated[list[str], typer.Option(help="A checkpoint, or published; may be repeated.")],
    language: LanguageFile = None,
    table: ComparisonFile = None,
) -> None:
    """Accuracy, NED and total edit distance on validation crops; the figures go to metrics.json beside each."""
    from export.spelling import AsServed
    from training.comparison import READINGS, compare
    from training.evaluate_recognizer import evaluate_recognizer as evaluate
    from training.models.recognizer import load_recognizer

    rows = {}
    for each in weights:
        model = load_recognizer(each)
        rows[each] = [evaluate(model, data, AsServed(model, language)).keep(each).metrics]
    _show(compare(rows, READINGS), table)


@evaluate_app.command("detector")
def evaluate_detector(
    data: SceneFolders,
    weights: Annotated[str, typer.Option(help="A checkpoint.")],
    models: Annotated[Path, typer.Option(help="The model repository with the recogniser to read with.")] = Path(
        "models"
    ),
    upright: Annotated[bool, typer.Option("--upright", help="Leave out the turned photographs.")] = False,
    alone: Annotated[bool, typer.Option("--alone", help="Only find words; read none.")] = False,
) -> None:
    """Find and read words of validation photographs as the service does; the figures go to metrics.json beside it."""
    from export.evaluate_detector import evaluate_detector as evaluate
    from training.evaluate_detector import TURNS

    figures = evaluate(weights, data, None if alone else models, turns=() if upright else TURNS).keep(weights)
    _show_metrics(figures.metrics)


@evaluate_app.command("identify")
def evaluate_identify(
    data: DataFolders,
    models: Annotated[Path, typer.Option(help="The model repository with embedder and classifier.")] = Path("models"),
    keep: Annotated[bool, typer.Option("--keep", help="Write figures and threshold into the embedder's card.")] = False,
) -> None:
    """Name species as the service does, with the models that are exported, and refuse kinds never trained on."""
    from export.evaluate_identify import figures, look_at
    from export.identify_figures import keep_figures

    measured = figures(look_at(data, models))
    if keep:
        keep_figures(measured, models)
    _show_metrics(measured.metrics)
    typer.echo(f"familiar from {measured.familiar_from}")


@export_app.command("embedder")
def export_embedder(
    weights: Weights,
    to: Repository = Path("models"),
    comparison: CardTable = None,
    notes: CardNotes = None,
) -> None:
    """Export the embedder with its figures, refusing a graph that differs from torch."""
    from export.embedder import export_embedder as export
    from training.evaluate_embedder import EmbedderFigures
    from training.models.embedder import load_embedder

    model = load_embedder(weights)
    table, findings = (file.read_text() if file else "" for file in (comparison, notes))
    manifest = export(model, EMBEDDER_SIZE, EmbedderFigures.of(weights), to, comparison=table, notes=findings)
    typer.echo(f"wrote {to / manifest.name}, version {manifest.version}, sha256 {manifest.sha256[:12]}…")


@export_app.command("classifier")
def export_classifier(
    weights: Annotated[str, typer.Option(help="A checkpoint.")],
    name: Annotated[str, typer.Option(help="What the model is called.")] = "classifier",
    to: Repository = Path("models"),
    comparison: CardTable = None,
    notes: CardNotes = None,
) -> None:
    """Export a classifier with its figures, refusing a graph that differs from torch."""
    from export.classifier import export_classifier as export
    from export.evaluate_classifier import ClassifierFigures
    from export.own_classifier import check_name
    from training.models.classifier import load_classifier

    check_name(name, to, again=True)
    table, findings = (file.read_text() if file else "" for file in (comparison, notes))
    figures = ClassifierFigures.of(weights)
    manifest = export(load_classifier(weights), figures, to, name, comparison=table, notes=findings)
    typer.echo(f"wrote {to / manifest.name}, version {manifest.version}, sha256 {manifest.sha256[:12]}…")


@export_app.command("recognizer")
def export_recognizer(
    weights: Annotated[str, typer.Option(help="A checkpoint, or published.")],
    language: LanguageFile = None,
    to: Repository = Path("models"),
    comparison: CardTable = None,
    notes: CardNotes = None,
) -> None:
    """Export the recogniser with its figures, refusing a graph that differs from torch."""
    from export.recognizer import export_recognizer as export
    from training.evaluate_recognizer import RecognizerFigures
    from training.models.recognizer import load_recognizer

    model = load_recognizer(weights)
    table, findings = (file.read_text() if file else "" for file in (comparison, notes))
    figures = RecognizerFigures.of(weights)
    manifest = export(model, figures, to, language=language, comparison=table, notes=findings)
    typer.echo(f"wrote {to / manifest.name}, version {manifest.version}, sha256 {manifest.sha256[:12]}…")


@export_app.command("detector")
def export_detector(
    weights: Annotated[str, typer.Option(help="A checkpoint.")],
    to: Repository = Path("models"),
    comparison: CardTable = None,
    notes: CardNotes = None,
) -> None:
    """Export the detector with its figures, refusing a graph that differs from torch."""
    from export.detector import export_detector as export
    from training.evaluate_detector import DetectorFigures
    from training.models.detectors import load_dense_detector

    table, findings = (file.read_text() if file else "" for file in (comparison, notes))
    manifest = export(load_dense_detector(weights), DetectorFigures.of(weights), to, comparison=table, notes=findings)
    typer.echo(f"wrote {to / manifest.name}, version {manifest.version}, sha256 {manifest.sha256[:12]}…")


@export_app.command("language")
def export_language(
    data: WordFolders,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    weight: Annotated[float, typer.Option(help="How much the language counts beside what is seen.", min=0)] = 0.5,
    bonus: Annotated[float, typer.Option(help="For each letter of a word.", min=0)] = 1.0,
) -> None:
    """Learn which words are likely, from labels of the set train and this machine's lists of words."""
    from export.language import export_language as export

    language = export(data, out, weight=weight, bonus=bonus)
    typer.echo(f"wrote {out}: {len(language.words)} words")


@export_app.command("starter")
def export_starter(
    data: DataFolders,
    name: Annotated[str, typer.Option(help="What the collection is called.")],
    description: Annotated[str, typer.Option(help="What it holds.")] = "",
    version: Annotated[int | None, typer.Option(help="Of the embedder; by default the newest.", min=1)] = None,
    to: Repository = Path("models"),
) -> None:
    """Put vectors and labels of training pictures beside the embedder: the collection a new service starts with."""
    from export.starter import export_starter as export
    from serving.repository import versions_of

    place = to / "embedder" / str(version or versions_of(to / "embedder").newest)
    count = export(data, name, description, place)
    typer.echo(f"wrote {place / 'starter.npz'}: {count} vectors")


def _show_metrics(metrics: Mapping[str, float]) -> None:
    """A figure a line."""
    from rich.console import Console
    from rich.table import Table

    table = Table("metric", "value", box=None)
    for name, value in metrics.items():
        table.add_row(name, f"{value:g}")
    Console().print(table)


def _show(comparison: "Comparison", file: Path | None) -> None:
    """A comparison on the screen, and as Markdown in a file."""
    from rich.console import Console
    from rich.table import Table

    lines = [comparison.columns, *comparison.rows]
    if len(comparison.columns) > WIDEST_TABLE:
        lines = [list(line) for line in zip(*lines, strict=True)]
    shown = Table(*lines[0], box=None)
    for line in lines[1:]:
        shown.add_row(*line)
    Console().print(shown)
    if file is not None:
        file.write_text(comparison.markdown())
