"""Questions to the database that several writes and reads share."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from serving.errors import CollectionMissing, IdempotencyConflict, ItemMissing
from serving.store.review_tables import Observation, ObservationImage
from serving.store.tables import Collection, IdempotencyKey, Item


@dataclass(frozen=True)
class CollectionSummary:
    """A collection and what is in it."""

    name: str
    description: str
    items: int
    outdated: int  # items that no search finds, as another model made their vectors
    labels: Mapping[str, int]


def summarize(session: Session, name: str, model: str) -> CollectionSummary:
    """What a collection holds; items of another model than `model` are outdated."""
    collection = find_collection(session, name)
    own = Item.collection_id == collection.id
    counts = session.execute(select(Item.label, func.count()).where(own).group_by(Item.label)).all()
    labels = sorted(((label, count) for label, count in counts if label is not None), key=lambda row: (-row[1], row[0]))
    outdated = session.scalar(select(func.count()).where(own, Item.model != model))
    total = sum(row[1] for row in counts)
    return CollectionSummary(collection.name, collection.description, total, outdated or 0, dict(labels))


def find_collection(session: Session, name: str) -> Collection:
    """A collection by its name; raises CollectionMissing."""
    collection = session.scalar(select(Collection).where(Collection.name == name))
    if collection is None:
        raise CollectionMissing(f"there is no collection named {name!r}; GET /v1/collections lists all")
    return collection


def find_item(session: Session, collection_name: str, item_id: int) -> Item:
    """An item of a collection; raises ItemMissing."""
    collection = find_collection(session, collection_name)
    item = session.get(Item, item_id)
    if item is None or item.collection_id != collection.id:
        raise ItemMissing(f"there is no item {item_id} in {collection_name!r}")
    return item


def repeated_item(session: Session, known: IdempotencyKey, request: str) -> Item:
    """The item that a key made before; raises IdempotencyConflict if it came with something else."""
    if known.request != request:
        raise IdempotencyConflict(
            f"the Idempotency-Key {known.key!r} was used for something else; take a new key for a new item"
        )
    item = session.get(Item, known.item_id)
    if item is None:
        raise ItemMissing(f"item {known.item_id}, which this Idempotency-Key made, was deleted since")
    return item


def pictures_of(session: Session, collection_id: int) -> list[str]:
    """Pictures of a collection's items and observations."""
    items = session.scalars(select(Item.sha256).where(Item.collection_id == collection_id)).all()
    shown = session.scalars(
        select(ObservationImage.sha256)
        .join(Observation, Observation.id == ObservationImage.observation_id)
        .where(Observation.collection_id == collection_id)
    ).all()
    return [name for name in {*items, *shown} if name]


def unused_pictures(session: Session, pictures: list[str]) -> list[str]:
    """Of these pictures those that no item and no observation holds any more."""
    unused = []
    for start in range(0, len(pictures), 500):
        part = pictures[start : start + 500]
        held = set(session.scalars(select(Item.sha256).where(Item.sha256.in_(part))))
        held |= set(session.scalars(select(ObservationImage.sha256).where(ObservationImage.sha256.in_(part))))
        unused += [picture for picture in part if picture not in held]
    return unused
