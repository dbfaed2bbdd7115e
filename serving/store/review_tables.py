"""Tables of observations, of what experts say of them, and of who they are."""

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import JSON, ForeignKey, Index, LargeBinary, String, text
from sqlalchemy.orm import Mapped, mapped_column

from serving.store.tables import Moment, Table, now

LIVE = text("retired = 0")
Rule = Literal["one_expert", "two_thirds"]
Status = Literal["needs_review", "verified", "rejected", "uncertain"]


class Taxon(Table):
    """A species, genus or any other group, known by its number; names may change."""

    __tablename__ = "taxa"
    __table_args__ = (
        Index("uq_taxa_name_of_live", "name", unique=True, sqlite_where=LIVE, postgresql_where=text("NOT retired")),
        Index(None, "parent_id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200))  # the accepted one; the label of items that show it
    rank: Mapped[str] = mapped_column(String(50))
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("taxa.id"))
    synonyms: Mapped[list[str]] = mapped_column(JSON, default=list)
    common_names: Mapped[list[str]] = mapped_column(JSON, default=list)
    gbif_key: Mapped[int | None]
    retired: Mapped[bool] = mapped_column(default=False)  # merged into another, or split up
    merged_into: Mapped[int | None] = mapped_column(ForeignKey("taxa.id"))
    created: Mapped[datetime] = mapped_column(Moment, default=now)


class ReviewPolicy(Table):
    """How the observations of a collection are decided; a collection without a row has the defaults."""

    __tablename__ = "review_policies"

    collection_id: Mapped[int] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True)
    rule: Mapped[Rule] = mapped_column(String(20), default="one_expert")
    blind: Mapped[bool] = mapped_column(default=False)
    random_share: Mapped[float] = mapped_column(default=0.1)


class Observation(Table):
    """One organism at one time and place, in one to five pictures."""

    __tablename__ = "observations"
    __table_args__ = (
        Index(None, "collection_id", "status", "sampled", "doubt"),  # by doubt, and
        Index(None, "collection_id", "status", "sampled", "id"),  # as they came
        Index(None, "taxon_id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    collection_id: Mapped[int] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"))
    status: Mapped[Status] = mapped_column(String(20), default="needs_review")
    taxon_id: Mapped[int | None] = mapped_column(ForeignKey("taxa.id"))  # what the votes made of it
    observed: Mapped[str | None] = mapped_column(String(40))  # a date or a time, as exact as it is known
    latitude: Mapped[float | None]
    longitude: Mapped[float | None]
    place: Mapped[str] = mapped_column(String(500), default="")
    observer: Mapped[str] = mapped_column(String(200), default="")
    notes: Mapped[str] = mapped_column(String(5000), default="")
    submitter: Mapped[str] = mapped_column(String(100), default="")
    identification: Mapped[dict[str, Any]] = mapped_column(JSON)
    doubt: Mapped[float]  # 0…1: how much an expert's word is worth here
    sampled: Mapped[bool]  # of the random share, which tells how good the model is
    created: Mapped[datetime] = mapped_column(Moment, default=now)
    decided: Mapped[datetime | None] = mapped_column(Moment)


class ObservationImage(Table):
    """A picture of an observation."""

    __tablename__ = "observation_images"
    __table_args__ = (Index(None, "observation_id"), Index(None, "sha256"))

    id: Mapped[int] = mapped_column(primary_key=True)
    observation_id: Mapped[int] = mapped_column(ForeignKey("observations.id", ondelete="CASCADE"))
    sha256: Mapped[str] = mapped_column(String(64))
    media_type: Mapped[str] = mapped_column(String(50))
    width: Mapped[int]
    height: Mapped[int]
    organ: Mapped[str | None] = mapped_column(String(50))
    model: Mapped[str] = mapped_column(String(64))  # sha256 of the model that made the vector
    embedding: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)  # float32, little endian
    item_id: Mapped[int | None]  # the item of the collection that shows it
    adopted: Mapped[bool] = mapped_column(default=False)  # the item was there before the observation, and stays


class Vote(Table):
    """What one person says an observation is. Never deleted; one that was taken back or replaced is withdrawn."""

    __tablename__ = "votes"
    __table_args__ = (
        Index(None, "observation_id", "withdrawn"),
        Index(None, "taxon_id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    observation_id: Mapped[int] = mapped_column(ForeignKey("observations.id", ondelete="CASCADE"))
    who: Mapped[str] = mapped_column(String(100))
    kind: Mapped[str] = mapped_column(String(20))  # taxon, new_taxon, cannot_tell, not_an_organism
    taxon_id: Mapped[int | None] = mapped_column(ForeignKey("taxa.id"))
    comment: Mapped[str] = mapped_column(String(2000), default="")
    withdrawn: Mapped[bool] = mapped_column(default=False)
    created: Mapped[datetime] = mapped_column(Moment, default=now)


class Lease(Table):
    """Who is looking at an observation just now; nobody else gets it until then."""

    __tablename__ = "leases"
    __table_args__ = (Index(None, "who"),)

    observation_id: Mapped[int] = mapped_column(ForeignKey("observations.id", ondelete="CASCADE"), primary_key=True)
    who: Mapped[str] = mapped_column(String(100))
    expires: Mapped[datetime] = mapped_column(Moment)


class Event(Table):
    """Something that happened to an observation or a taxon. Only ever added; `serving/review/history.py` replays it."""

    __tablename__ = "events"
    __table_args__ = (
        Index(None, "observation_id", "number"),
        Index(None, "taxon_id", "number"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(primary_key=True)
    observation_id: Mapped[int | None]  # no foreign keys: history outlives what it tells of
    taxon_id: Mapped[int | None]
    kind: Mapped[str] = mapped_column(String(20))
    who: Mapped[str] = mapped_column(String(100))
    facts: Mapped[dict[str, Any]] = mapped_column(JSON)
    at: Mapped[datetime] = mapped_column(Moment, default=now)


class ApiKey(Table):
    """What an app or a person shows to be let in; only its digest is kept."""

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100))  # its owner: two keys of one name are one person
    role: Mapped[str] = mapped_column(String(10))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    created: Mapped[datetime] = mapped_column(Moment, default=now)
    expires: Mapped[datetime | None] = mapped_column(Moment)
    revoked: Mapped[datetime | None] = mapped_column(Moment)
