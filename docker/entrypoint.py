"""What a container of the API runs: makes the first keys, if there are none, and becomes `readleaf serve`.

The service listens on other addresses than loopback only once a key exists, and a container has to.
"""

import os
import sys
from pathlib import Path

import typer

from serving.errors import DataFolderUnusable, ReadleafError
from serving.keys import any_keys, make_key
from serving.roles import Role
from serving.settings import load_settings
from serving.store.data_folder import hold_data_folder
from serving.store.database import FILE_NAME, open_database

# No READLEAF_… name: those are the service's, and one that it does not know stops its start.
METRICS_KEY_FILE = "METRICS_KEY_FILE"

FIRST_KEY = """
This is a new data folder, so here is its first key, with the role admin:

    {secret}

Keep it now: it is shown once and kept nowhere. Sign in with it on the page, or send it as `Authorization: Bearer KEY`.
Keys for others: readleaf keys create --name Ann --role expert
"""


def make_first_keys(folder: Path, metrics_key: Path | None) -> None:
    """An `admin` key in a folder that has no keys, and a `read` key for Prometheus if its file is not there."""
    with hold_data_folder(folder, "the entry point"), open_database(folder / FILE_NAME) as database:
        with database.writing() as session:
            first = not any_keys(session)
            admin = make_key(session, "admin", Role.ADMIN)[1] if first else None
            if metrics_key and (first or not metrics_key.exists()):
                # Before the commit: a key that could not be handed over is not made either.
                _hand_over(make_key(session, "Prometheus", Role.READ)[1], metrics_key)
        if admin:
            typer.echo(FIRST_KEY.format(secret=admin))


def _hand_over(secret: str, file: Path) -> None:
    """Prometheus runs as another user, and must never see half a key; nobody else has this volume."""
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)  # of a start that was cut short; it may not be written any more
    new.write_text(secret)
    new.chmod(0o444)
    new.replace(file)


def main() -> None:
    """Run it; flags are those of `readleaf serve`."""
    metrics_key = os.environ.get(METRICS_KEY_FILE)
    try:
        make_first_keys(load_settings().data_dir, Path(metrics_key) if metrics_key else None)
    except DataFolderUnusable as error:
        sys.exit(f"readleaf: {error}; in a container, mount a volume there that user {os.getuid()} may write")
    except (ReadleafError, OSError) as error:
        sys.exit(f"readleaf: {error}")
    command = str(Path(sys.executable).with_name("readleaf"))
    os.execv(command, [command, "serve", *sys.argv[1:]])  # the same process, so signals reach the service


if __name__ == "__main__":
    main()
