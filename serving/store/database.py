"""Opens the database: SQLite in the data folder, brought to the newest version of the tables."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from serving.errors import DatabaseUnusable, DataFolderUnusable

FILE_NAME = "readleaf.db"  # in the data folder
MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_MILLISECONDS = 20_000


class Database:
    """Sessions on one engine."""

    def __init__(self, engine: Engine) -> None:
        self._reading = engine
        # A transaction that reads first and then writes would fail if another one wrote in between.
        self._writing = engine.execution_options(immediate=True)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that sees one state of the database throughout."""
        with Session(self._reading, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session whose work is kept whole at the end, or not at all."""
        with Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session


def prepare_data_folder(folder: Path) -> None:
    """Make the data folder if need be; raises DataFolderUnusable when it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFolderUnusable(
            f"the data folder {folder} cannot be made ({error.strerror}); set READLEAF_DATA_DIR"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataFolderUnusable(f"the data folder {folder} cannot be written; set READLEAF_DATA_DIR")


@contextmanager
def open_database(file: Path) -> Iterator[Database]:
    """Open or make the database; raises DatabaseUnusable with one clear sentence."""
    engine = create_engine(
        f"sqlite:///{file}", connect_args={"timeout": BUSY_MILLISECONDS / 1000}, json_serializer=_json
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    try:
        _migrate(engine, file)
        yield Database(engine)
    finally:
        engine.dispose()


def _json(value: Any) -> str:
    """As it reads: names in JSON are searched for as text."""
    return json.dumps(value, ensure_ascii=False)


def _prepare(connection: Any, _record: Any) -> None:
    # pysqlite's own transactions begin too late for a read and a write to see the same state.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")  # readers and one writer at a time do not wait for each other
    cursor.execute("PRAGMA synchronous = FULL")  # what was acknowledged survives a power cut
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin(connection: Any) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _migrate(engine: Engine, file: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except CommandError as error:
        raise DatabaseUnusable(f"{file} was written by a newer Readleaf; start that version") from error
    except DatabaseError as error:
        raise DatabaseUnusable(f"{file} is not a database that can be used ({error.orig}); move it away") from error
