"""`readleaf models list|activate`: what is on disk, what is in use, and switching a running service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from serving.client import Client
    from serving.manifest import Manifest

models_app = typer.Typer(help="Versions of models: look, compare, switch.", no_args_is_help=True)

DEFAULT_SERVICE = "http://127.0.0.1:8000"


@models_app.command("list")
def list_models(
    folder: Annotated[Path | None, typer.Option(help="Model repository (READLEAF_MODELS_DIR).")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Data folder of the service (READLEAF_DATA_DIR).")] = None,
) -> None:
    """List all versions of all models on disk, after checking every file; exits with 1 if one cannot be used.

    "used" marks what a service on this data folder answers with.
    """
    from rich.console import Console
    from rich.table import Table

    from serving.on_this_machine import versions_in_use
    from serving.repository import find_versions
    from serving.settings import load_settings

    settings = load_settings(data_dir=data_dir)
    table = Table("name", "version", "", "sha256", "figures", box=None)
    console, broken = Console(), []
    known, used = find_versions(folder or settings.models_dir), versions_in_use(settings)
    for name, versions in sorted(known.items()):
        for version in sorted({*versions.good, *versions.broken}):
            mark = "used" if used.get(name, versions.newest) == version else ""
            if version in versions.broken:
                table.add_row(name, str(version), mark, "", "cannot be used: see below")
                broken.append(f"{name} {version}: {versions.broken[version].message}")
                continue
            manifest = versions.good[version].manifest
            table.add_row(name, str(version), mark, manifest.sha256[:12], _figures(manifest))
    console.print(table)
    for line in broken:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if broken:
        raise typer.Exit(1)


@models_app.command("activate")
def activate(
    name: Annotated[str, typer.Argument(help="The model's name.")],
    version: Annotated[int, typer.Argument(help="The version that should answer.", min=1)],
    force: Annotated[
        bool, typer.Option("--force", help="Even if its figures are worse, or items without a picture would be lost.")
    ] = False,
    url: Annotated[str, typer.Option(help="Address of the service.", envvar="READLEAF_URL")] = DEFAULT_SERVICE,
    key: Annotated[str | None, typer.Option(help="An API key of role admin.", envvar="READLEAF_KEY")] = None,
) -> None:
    """Switch a running service to another version, after its checks; no request fails meanwhile.

    An embedder looks at all pictures first, and is used together with its new index.
    """
    from rich.console import Console

    from serving.client import Client

    with Client(url, key, timeout=600) as client:  # loading a model may take long, on a GPU above all
        in_use = switch(client, name, version, Console(stderr=True), force=force)
    raise typer.Exit(0 if in_use else 1)


def switch(client: "Client", name: str, version: int, console: "Console", *, force: bool = False) -> bool:
    """Ask for a switch and wait until it is done; says what became of it."""
    from serving.index_commands import follow

    done = client.activate(name, version, force=force)
    before = f"; before it was version {done.previous}" if done.previous not in (None, version) else ""
    if done.job is not None:
        job = follow(client, client.job(done.job), console)
        if job.state != "done":
            console.print(f"{job.state}: {job.message}".rstrip(": "), f"{name} version {done.previous} stays in use")
            return False
    console.print(f"{name} version {version} is in use{before}")
    return True


def _figures(manifest: "Manifest") -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in sorted(manifest.figures.items())) or "none"
