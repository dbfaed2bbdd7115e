"""The one command. Heavy parts are imported by the command that needs them, so that `--help` is instant."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from training.comparison import Comparison

app = typer.Typer(
    name="readleaf",
    help="Reads text in pictures, finds look-alikes, names species.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
models_app = typer.Typer(help="Look at the model repository.", no_args_is_help=True)
evaluate_app = typer.Typer(help="Score a model on validation data.", no_args_is_help=True)
index_app = typer.Typer(help="Fill and search collections of a running service.", no_args_is_help=True)
train_app = typer.Typer(help="Train a model.", no_args_is_help=True)
export_app = typer.Typer(help="Turn a trained model into one that can be served.", no_args_is_help=True)
app.add_typer(models_app, name="models")
app.add_typer(index_app, name="index")
app.add_typer(train_app, name="train")
app.add_typer(evaluate_app, name="evaluate")
app.add_typer(export_app, name="export")

EMBEDDER_SIZE = 224
WIDEST_TABLE = 7  # columns; with more, a comparison is shown with a model a column
Service = Annotated[str, typer.Option("--url", help="Address of the service.", envvar="READLEAF_URL")]
DEFAULT_SERVICE = "http://127.0.0.1:8000"
CollectionName = Annotated[str, typer.Argument(help="The collection's name.")]
DataFolders = Annotated[
    list[Path], typer.Option("--data", help="A folder with labels.tsv, or with one a class; may be repeated.")
]
WordFolders = Annotated[
    list[Path], typer.Option("--data", help="A folder with labels.tsv, or with LMDB sets; may be repeated.")
]
Config = Annotated[Path, typer.Argument(help="A TOML file; training/configs/ has examples.")]
Out = Annotated[Path, typer.Option(help="The folder of this training.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="key=value in place of the config's.")]
ComparisonFile = Annotated[Path | None, typer.Option(help="Write the comparison as Markdown, too.")]
Weights = Annotated[str, typer.Option(help="A checkpoint, or imagenet.")]
CardTable = Annotated[Path | None, typer.Option(help="A table in Markdown for the card.")]
CardNotes = Annotated[Path | None, typer.Option(help="Findings in Markdown for the card.")]
LanguageFile = Annotated[Path | None, typer.Option(help="A language to read with; `export language` makes one.")]
Repository = Annotated[Path, typer.Option(help="The model repository to write into.")]


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (READLEAF_HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 picks a free one (READLEAF_PORT).")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where to write (READLEAF_DATA_DIR).")] = None,
) -> None:
    """Serve the page and the API on one port. All settings: serving/README.md."""
    from serving.server import run_server
    from serving.settings import load_settings

    settings = load_settings(host=host, port=port, data_dir=data_dir)
    if not settings.ui:
        return run_server(settings)
    from ui import mount_page

    page = partial(mount_page, data_dir=settings.data_dir, max_file_size=settings.max_image_bytes)
    return run_server(settings, page)


@app.command()
def read(
    pictures: Annotated[list[Path], typer.Argument(help="Pictures, or folders of pictures.", exists=True)],
    crops: Annotated[bool, typer.Option("--crops", help="Each picture shows one word.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Read words, without a running service: file, text and confidence, separated by tabs."""
    from serving.logs import configure_logs
    from serving.read_commands import read_crops
    from serving.settings import load_settings

    if not crops:
        raise typer.BadParameter("whole pictures cannot be read yet; crops of single words can, with --crops")
    settings = load_settings()
    configure_logs("warning", settings.log_format)
    raise typer.Exit(1 if read_crops(pictures, settings, typer.echo, as_json=as_json) else 0)


@models_app.command("list")
def list_models(
    folder: Annotated[Path | None, typer.Option(help="Model repository (READLEAF_MODELS_DIR).")] = None,
) -> None:
    """List the models on disk, after checking every file."""
    from rich.console import Console
    from rich.table import Table

    from serving.repository import load_repository
    from serving.settings import load_settings

    table = Table("name", "version", "task", "sha256", "title", box=None)
    for model in load_repository(folder or load_settings().models_dir).values():
        manifest = model.manifest
        table.add_row(manifest.name, str(manifest.version), manifest.task, manifest.sha256[:12], manifest.title)
    Console().print(table)


@index_app.command("info")
def index_info(url: Service = DEFAULT_SERVICE) -> None:
    """List all collections."""
    from rich.console import Console

    from serving.client import Client
    from serving.index_commands import show_collections

    with Client(url) as client:
        show_collections(client, Console())


@index_app.command("import")
def index_import(
    collection: CollectionName,
    source: Annotated[Path, typer.Argument(help="A folder or a zip file; folders in it are labels.", exists=True)],
    label: Annotated[str | None, typer.Option(help="One label for all pictures.")] = None,
    url: Service = DEFAULT_SERVICE,
) -> None:
    """Add pictures to a collection; those that are there already are passed over."""
    from rich.console import Console

    from serving.client import Client
    from serving.index_commands import import_pictures

    with Client(url) as client:
        refused = import_pictures(client, collection, source, label, Console())
    raise typer.Exit(1 if refused else 0)


@index_app.command("search")
def index_search(
    collection: CollectionName,
    picture: Annotated[Path, typer.Argument(help="The picture to look for.", exists=True, dir_okay=False)],
    k: Annotated[int, typer.Option(help="How many neighbours.", min=1, max=100)] = 10,
    label: Annotated[str | None, typer.Option(help="Look at items of this label only.")] = None,
    region: Annotated[str | None, typer.Option(help="A part of the picture: left,top,width,height in pixels.")] = None,
    url: Service = DEFAULT_SERVICE,
) -> None:
    """What looks like a picture, or a part of it."""
    from rich.console import Console

    from serving.client import Client
    from serving.index_commands import show_search

    with Client(url) as client:
        show_search(client.search(collection, picture, k, label, region), Console())


@index_app.command("export")
def index_export(
    collection: CollectionName,
    to: Annotated[Path, typer.Argument(help="A new folder.")],
    url: Service = DEFAULT_SERVICE,
) -> None:
    """Write a collection as a folder that a training can read."""
    from rich.console import Console

    from serving.client import Client
    from serving.index_commands import export

    with Client(url) as client:
        export(client, collection, to, Console())


@index_app.command("rebuild")
def index_rebuild(collection: CollectionName, url: Service = DEFAULT_SERVICE) -> None:
    """Make vectors anew that another model made."""
    from rich.console import Console

    from serving.client import Client
    from serving.index_commands import rebuild

    with Client(url) as client:
        refused = rebuild(client, collection, Console())
    raise typer.Exit(1 if refused else 0)


@train_app.command("embedder")
def train_embedder(
    config: Config,
    data: DataFolders,
    out: Out,
    resume: Resume = False,
    change: Changes = None,
) -> None:
    """Train the embedder; Ctrl-C stops it, --resume goes on."""
    from training.config import read_config
    from training.train_embedder import EmbedderTraining
    from training.train_embedder import train_embedder as train

    best = train(read_config(EmbedderTraining, config, _changes(change)), data, out, resume=resume)
    typer.echo(f"the best weights are in {best}")


@train_app.command("recognizer")
def train_recognizer(
    config: Config,
    data: WordFolders,
    out: Out,
    resume: Resume = False,
    change: Changes = None,
) -> None:
    """Train the recogniser on its proxy loss; Ctrl-C stops it, --resume goes on."""
    from training.config import read_config
    from training.train_recognizer import RecognizerTraining
    from training.train_recognizer import train_recognizer as train

    best = train(read_config(RecognizerTraining, config, _changes(change)), data, out, resume=resume)
    typer.echo(f"the best weights are in {best}")


@train_app.command("tune-recognizer")
def tune_recognizer(config: Config, data: WordFolders, out: Out, change: Changes = None) -> None:
    """Tune a trained recogniser on a learned surrogate of edit distance (LS-ED, FEDS), or go on with its proxy."""
    from training.config import read_config
    from training.tune_recognizer import RecognizerTuning
    from training.tune_recognizer import tune_recognizer as tune

    typer.echo(f"the weights are in {tune(read_config(RecognizerTuning, config, _changes(change)), data, out)}")


@train_app.command("mix-recognizers")
def mix_recognizers(
    start: Annotated[str, typer.Argument(help="A checkpoint, or published.")],
    trained: Annotated[str, typer.Argument(help="What was trained from it.")],
    to: Annotated[Path, typer.Argument(help="The checkpoint to write.")],
    share: Annotated[float, typer.Option(help="How much of the trained one.", min=0, max=1)] = 0.5,
) -> None:
    """Mix the weights of a recogniser with those it was trained from: it forgets less."""
    from training.mix_recognizers import mix_recognizers as mix

    mix(start, trained, share, to)
    typer.echo(f"wrote {to}")


@train_app.command("words-sheet")
def words_sheet(
    to: Annotated[Path, typer.Argument(help="The PNG to write.")],
    count: Annotated[int, typer.Option(help="How many words.", min=1, max=2000)] = 500,
    seed: Annotated[int, typer.Option(help="Another seed, other words.")] = 0,
) -> None:
    """Look at the words that the recogniser's renderer draws: a contact sheet."""
    from training.data.contact_sheet import draw_sheet

    draw_sheet(to, count, seed)
    typer.echo(f"wrote {to}")


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
    from export.repository import sha256_of
    from export.spelling import as_served
    from training.comparison import READINGS, compare
    from training.evaluate_recognizer import evaluate_recognizer as evaluate
    from training.models.recognizer import load_recognizer

    rows = {}
    for each in weights:
        model = load_recognizer(each)
        decode, digest = (as_served(model, language), sha256_of(language)) if language else (None, "")
        rows[each] = [evaluate(model, data, decode, digest).keep(each).metrics]
    _show(compare(rows, READINGS), table)


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


@export_app.command("language")
def export_language(
    data: WordFolders,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    weight: Annotated[float, typer.Option(help="How much the language counts beside what is seen.", min=0)] = 0.5,
    bonus: Annotated[float, typer.Option(help="For each letter of a word.")] = 1.0,
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
    to: Repository = Path("models"),
) -> None:
    """Put vectors and labels of training pictures beside the embedder: the collection a new service starts with."""
    from export.starter import export_starter as export

    count = export(data, name, description, to / "embedder")
    typer.echo(f"wrote {to / 'embedder/starter.npz'}: {count} vectors")


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


def _changes(entries: list[str] | None) -> dict[str, str]:
    return dict(entry.partition("=")[::2] for entry in entries or ())


def main() -> None:
    """Run the command; every expected failure is one sentence and an exit code, 1 unless it says otherwise."""
    try:
        app()
    except Exception as error:
        if not _is_ours(error):
            raise
        typer.echo(f"readleaf: {error}", err=True)
        sys.exit(getattr(error, "exit_code", 1))


def _is_ours(error: Exception) -> bool:
    """Errors with a message for the user, told apart without importing what defines them."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"ReadleafError", "ParityError", "DataError", "OSError", "ApiError", "ServiceUnreachable"})


if __name__ == "__main__":
    main()
