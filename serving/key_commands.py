"""`readleaf keys …`: works on the database in the data folder, whether a service runs on it or not."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from serving.roles import Role

if TYPE_CHECKING:
    from serving.store.database import Database
    from serving.store.review_tables import ApiKey

keys_app = typer.Typer(help="API keys: who may use the service, and for what.", no_args_is_help=True)

DataFolder = Annotated[Path | None, typer.Option(help="The service's data folder (READLEAF_DATA_DIR).")]


@keys_app.command("create")
def create_key(
    name: Annotated[str, typer.Option(help="Whose key it is; votes are counted by this name.")],
    role: Annotated[Role, typer.Option(help="What it is for; each role may do what the one before it may.")],
    expires: Annotated[
        int | None, typer.Option(help="Days until it expires; never, if left out.", min=1, max=36_500)
    ] = None,
    data_dir: DataFolder = None,
) -> None:
    """Make a key. It is printed once, alone on the standard output, and kept nowhere."""
    from datetime import timedelta

    from serving.keys import clean_owner, make_key

    try:
        owner = clean_owner(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--name") from error
    with _database(data_dir, make=True) as database, database.writing() as session:
        key, secret = make_key(session, owner, role, None if expires is None else timedelta(days=expires))
    typer.echo(secret)
    until = f"until {key.expires:%Y-%m-%d %H:%M} UTC" if key.expires else "until it is revoked"
    typer.echo(
        f"key {key.id} of {key.name}, role {key.role}, {until}; keep it now, as it cannot be shown again\n"
        "from now on every call needs a key: `Authorization: Bearer KEY`, READLEAF_KEY for `readleaf index`",
        err=True,
    )


@keys_app.command("list")
def show_keys(data_dir: DataFolder = None) -> None:
    """List all keys that were ever made."""
    from rich.console import Console
    from rich.table import Table

    from serving.keys import list_keys

    table = Table("number", "name", "role", "made", "expires", "state", box=None)
    with _database(data_dir) as database, database.reading() as session:
        for key in list_keys(session):
            expires = f"{key.expires:%Y-%m-%d}" if key.expires else "never"
            table.add_row(str(key.id), key.name, key.role, f"{key.created:%Y-%m-%d}", expires, _state(key))
    Console(markup=False).print(table)  # a name may hold brackets


@keys_app.command("revoke")
def revoke(
    number: Annotated[int, typer.Argument(help="The key's number, as `readleaf keys list` shows it.", max=2**63 - 1)],
    data_dir: DataFolder = None,
) -> None:
    """Let nobody in with a key any more; a running service follows within two seconds."""
    from serving.keys import is_live, list_keys, revoke_key

    with _database(data_dir) as database, database.writing() as session:
        key = revoke_key(session, number)
        left = any(is_live(each) for each in list_keys(session))
    typer.echo(f"key {key.id} of {key.name} is revoked")
    if not left:
        typer.echo("no key is left, so nobody is let in until one is made: `readleaf keys create`", err=True)


def _state(key: "ApiKey") -> str:
    from serving.keys import is_live

    return "revoked" if key.revoked else "valid" if is_live(key) else "expired"


@contextmanager
def _database(data_dir: Path | None, *, make: bool = False) -> Iterator["Database"]:
    from serving.errors import DatabaseUnusable
    from serving.settings import load_settings
    from serving.store.database import FILE_NAME, open_database, prepare_data_folder

    folder = load_settings(data_dir=data_dir).data_dir
    if make:
        prepare_data_folder(folder)
    elif not (folder / FILE_NAME).exists():
        raise DatabaseUnusable(f"there is no database in {folder}; name the service's folder with --data-dir")
    with open_database(folder / FILE_NAME) as database:
        yield database
