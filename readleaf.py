"""The one command. Heavy parts are imported by the command that needs them, so that `--help` is instant."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from export.commands import evaluate_app, export_app
from serving.key_commands import keys_app
from serving.local_triton.commands import triton_app
from serving.model_commands import DEFAULT_SERVICE, models_app
from training.commands import train_app

app = typer.Typer(
    name="readleaf",
    help="Reads text in pictures, finds look-alikes, names species.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
index_app = typer.Typer(help="Fill and search collections of a running service.", no_args_is_help=True)
app.add_typer(models_app, name="models")
app.add_typer(index_app, name="index")
app.add_typer(keys_app, name="keys")
app.add_typer(triton_app, name="triton")
app.add_typer(train_app, name="train")
app.add_typer(evaluate_app, name="evaluate")
app.add_typer(export_app, name="export")

Service = Annotated[str, typer.Option("--url", help="Address of the service.", envvar="READLEAF_URL")]
Key = Annotated[str | None, typer.Option("--key", help="An API key, if the service needs one.", envvar="READLEAF_KEY")]
CollectionName = Annotated[str, typer.Argument(help="The collection's name.")]


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
def page(
    api: Annotated[str, typer.Option(help="Address of the API.")] = DEFAULT_SERVICE,
    host: Annotated[str, typer.Option(help="Address to listen on; another than loopback once there are keys.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.", min=0, max=65535)] = 8080,
    data_dir: Annotated[Path | None, typer.Option(help="For what visitors upload (READLEAF_DATA_DIR).")] = None,
    max_file_size: Annotated[int, typer.Option(help="Largest picture file, in bytes.", min=1)] = 20_000_000,
) -> None:
    """Serve the page alone, in front of an API elsewhere."""
    import os

    from ui.standalone import run_page

    folder = data_dir or Path(os.environ.get("READLEAF_DATA_DIR") or Path.home() / ".local/share/readleaf")
    run_page(api, host, port, folder, max_file_size)


@app.command()
def read(
    pictures: Annotated[list[Path], typer.Argument(help="Pictures, or folders of pictures.", exists=True)],
    crops: Annotated[bool, typer.Option("--crops", help="Each picture shows one word.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    as_text: Annotated[bool, typer.Option("--text", help="The text alone; so it is by default.")] = False,
    overlay: Annotated[
        Path | None, typer.Option(help="Draw the words into this PNG; a folder, if there are many pictures.")
    ] = None,
    min_confidence: Annotated[
        float, typer.Option(help="Leave out words that are read less surely.", min=0, max=1)
    ] = 0.4,
) -> None:
    """Read all words of pictures in reading order, without a running service.

    With --crops: file, text and confidence of each, separated by tabs.
    """
    from serving.errors import OverlayUnusable
    from serving.logs import configure_logs
    from serving.read_commands import read_crops, read_pictures
    from serving.settings import load_settings

    if as_json and as_text:
        raise typer.BadParameter("give --json or --text, not both")
    if crops and overlay:
        raise typer.BadParameter("--overlay is for whole pictures, not for --crops")
    settings = load_settings()
    configure_logs("warning", settings.log_format)
    try:
        if crops:
            refused = read_crops(pictures, settings, typer.echo, as_json=as_json)
        else:
            refused = read_pictures(
                pictures, settings, typer.echo, as_json=as_json, overlay=overlay, least_sure=min_confidence
            )
    except OverlayUnusable as error:
        raise typer.BadParameter(str(error)) from error
    raise typer.Exit(1 if refused else 0)


@app.command()
def classify(
    pictures: Annotated[
        list[Path] | None, typer.Argument(help="Pictures, or folders of pictures.", exists=True)
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model that classifies; by default the one that ships.")] = None,
    prior: Annotated[
        Path | None,
        typer.Option(
            help="A JSON file, label → weight: how many times as often as in training it is met; 1 if left out.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    estimate_prior: Annotated[
        Path | None,
        typer.Option(
            help="A folder of pictures without labels to learn the weights from.", exists=True, file_okay=False
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="How many labels to show.", min=1, max=1000)] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Say what pictures show, without a running service: file, label and probability, separated by tabs.

    With --estimate-prior and no pictures, the weights are written as JSON, for --prior or the API.
    """
    from serving.classify_commands import classify_pictures
    from serving.logs import configure_logs
    from serving.settings import load_settings

    if prior and estimate_prior:
        raise typer.BadParameter("give --prior or --estimate-prior, not both")
    if not pictures and not estimate_prior:
        raise typer.BadParameter("give pictures, or --estimate-prior with a folder of them")
    settings = load_settings()
    configure_logs("warning", settings.log_format)
    refused = classify_pictures(
        pictures or [],
        settings,
        typer.echo,
        model=model,
        prior=prior,
        estimate_from=estimate_prior,
        top=top,
        as_json=as_json,
    )
    raise typer.Exit(1 if refused else 0)


@models_app.command("compare")
def compare_models(
    name: Annotated[str, typer.Argument(help="The model's name.")],
    first: Annotated[int, typer.Argument(help="A version, such as the one in use.", min=1)],
    second: Annotated[int, typer.Argument(help="Another one.", min=1)],
    data: Annotated[list[Path], typer.Option(help="A folder of labelled pictures; may be repeated.", exists=True)],
    folder: Annotated[Path | None, typer.Option(help="Model repository (READLEAF_MODELS_DIR).")] = None,
    limit: Annotated[int | None, typer.Option(help="Take so many pictures, always the same ones.", min=2)] = None,
) -> None:
    """Measure two versions on the same labelled pictures, on the runtime that the settings name."""
    from rich.console import Console

    from export.compare_versions import compare_versions
    from serving.logs import configure_logs
    from serving.settings import load_settings

    settings = load_settings(models_dir=folder)
    configure_logs("warning", settings.log_format)
    Console().print(compare_versions(settings, name, (first, second), data, limit).table())


@index_app.command("info")
def index_info(url: Service = DEFAULT_SERVICE, key: Key = None) -> None:
    """List all collections."""
    from rich.console import Console

    from serving.client import Client
    from serving.index_commands import show_collections

    with Client(url, key) as client:
        show_collections(client, Console())


@index_app.command("import")
def index_import(
    source: Annotated[
        Path,
        typer.Argument(help="A folder with one folder for each label or a labels.tsv, or a zip file.", exists=True),
    ],
    collection: Annotated[str, typer.Option(help="The collection's name; it is made if need be.")],
    label: Annotated[str | None, typer.Option(help="One label for all pictures.")] = None,
    url: Service = DEFAULT_SERVICE,
    key: Key = None,
) -> None:
    """Add pictures to a collection; those that are there already are passed over."""
    from rich.console import Console

    from serving.client import Client
    from serving.index_commands import import_pictures

    with Client(url, key) as client:
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
    key: Key = None,
) -> None:
    """What looks like a picture, or a part of it."""
    from rich.console import Console

    from serving.client import Client
    from serving.index_commands import show_search

    with Client(url, key) as client:
        show_search(client.search(collection, picture, k, label, region), Console())


@index_app.command("export")
def index_export(
    collection: CollectionName,
    to: Annotated[Path, typer.Argument(help="A new folder.")],
    url: Service = DEFAULT_SERVICE,
    key: Key = None,
) -> None:
    """Write a collection as a folder that a training can read."""
    from rich.console import Console

    from serving.client import Client
    from serving.index_commands import export

    with Client(url, key) as client:
        export(client, collection, to, Console())


@index_app.command("rebuild")
def index_rebuild(collection: CollectionName, url: Service = DEFAULT_SERVICE, key: Key = None) -> None:
    """Make vectors anew that another model made."""
    from rich.console import Console

    from serving.client import Client
    from serving.index_commands import rebuild

    with Client(url, key) as client:
        refused = rebuild(client, collection, Console())
    raise typer.Exit(1 if refused else 0)


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
