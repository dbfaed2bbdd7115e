"""The tables. A change here needs a migration in `migrations/versions/`."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}


def now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


class Moment(TypeDecorator[datetime]):
    """A time in UTC; SQLite keeps no zone, so it is put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Say that it is UTC."""
        return value and value.replace(tzinfo=UTC)


class Table(DeclarativeBase):
    """What all tables share."""

    metadata = MetaData(naming_convention=NAMES)


class Collection(Table):
    """A named set of items that is searched as one."""

    __tablename__ = "collections"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    description: Mapped[str] = mapped_column(String(2000))
    created: Mapped[datetime] = mapped_column(Moment, default=now)


class Item(Table):
    """A picture, or only its vector, with what is known of it."""

    __tablename__ = "items"
    __table_args__ = (
        UniqueConstraint("collection_id", "sha256"),
        Index(None, "collection_id", "label", "id"),
        {"sqlite_autoincrement": True},  # an id is never given twice: the index must not mix up two items
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    collection_id: Mapped[int] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"))
    label: Mapped[str | None] = mapped_column(String(200))
    details: Mapped[dict[str, Any]] = mapped_column("metadata", JSON)
    sha256: Mapped[str | None] = mapped_column(String(64))  # of the picture's file; none: only the vector is known
    media_type: Mapped[str | None] = mapped_column(String(50))
    width: Mapped[int | None]
    height: Mapped[int | None]
    model: Mapped[str] = mapped_column(String(64))  # sha256 of the model that made the vector
    embedding: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)  # float32, little endian
    created: Mapped[datetime] = mapped_column(Moment, default=now)


class Change(Table):
    """What the index of a collection has to follow, in order."""

    __tablename__ = "changes"
    __table_args__ = (Index(None, "collection_id", "number"), {"sqlite_autoincrement": True})

    number: Mapped[int] = mapped_column(primary_key=True)
    collection_id: Mapped[int] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"))
    item_id: Mapped[int]  # no foreign key: a deleted item's changes outlive it


class IdempotencyKey(Table):
    """A request that may be sent twice and must count once."""

    __tablename__ = "idempotency_keys"

    collection_id: Mapped[int] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(String(200), primary_key=True)
    request: Mapped[str] = mapped_column(String(64))  # sha256 of what was sent
    item_id: Mapped[int]
    created: Mapped[datetime] = mapped_column(Moment, default=now)


class Milestone(Table):
    """Something that happens once in the life of a database."""

    __tablename__ = "milestones"

    name: Mapped[str] = mapped_column(String(50), primary_key=True)
    reached: Mapped[datetime] = mapped_column(Moment, default=now)


class ModelInUse(Table):
    """Which version of a model answers."""

    __tablename__ = "models_in_use"

    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    version: Mapped[int]
    since: Mapped[datetime] = mapped_column(Moment, default=now)


class PreparedVector(Table):
    """What another version of the embedder makes of a picture, so that a switch to it takes no time."""

    __tablename__ = "prepared_vectors"

    model: Mapped[str] = mapped_column(String(64), primary_key=True)  # sha256
    picture: Mapped[str] = mapped_column(String(64), primary_key=True)  # sha256 of its file
    embedding: Mapped[bytes] = mapped_column(LargeBinary)  # float32, little endian


class Job(Table):
    """Work that goes on after its request was answered, and after a restart."""

    __tablename__ = "jobs"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    state: Mapped[str] = mapped_column(String(20))  # waiting, running, done, failed, cancelled
    wish: Mapped[dict[str, Any]] = mapped_column(JSON)  # what was asked for
    total: Mapped[int | None]
    done: Mapped[int] = mapped_column(default=0)  # entries looked at: where to go on after a restart
    message: Mapped[str] = mapped_column(String(2000), default="")
    created: Mapped[datetime] = mapped_column(Moment, default=now)
    finished: Mapped[datetime | None] = mapped_column(Moment)


class JobError(Table):
    """A file that a job could not take."""

    __tablename__ = "job_errors"
    __table_args__ = (Index(None, "job_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    file: Mapped[str] = mapped_column(String(1000))
    message: Mapped[str] = mapped_column(String(2000))
