"""Vectors of another version of the embedder, made beforehand; a switch puts them into use in one transaction."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Select, delete, func, insert, select, update
from sqlalchemy.orm import Session

from serving.store.bulk import STARTER_ROW
from serving.store.review_tables import ObservationImage
from serving.store.tables import Change, Item, PreparedVector

KINDS = (Item, ObservationImage)  # what has a vector


def pictures_to_prepare(session: Session, model: str, limit: int) -> list[str]:
    """Pictures of items and observations of which this model has made no vector yet."""
    return list(session.scalars(_to_prepare(model).limit(limit)))


def count_to_prepare(session: Session, model: str) -> int:
    """How many there are."""
    return session.scalar(select(func.count()).select_from(_to_prepare(model).subquery())) or 0


def _to_prepare(model: str) -> Select[tuple[str]]:
    ready = select(PreparedVector.picture).where(PreparedVector.model == model)
    items, seen = (
        select(kind.sha256).where(kind.sha256.is_not(None), kind.model != model, kind.sha256.not_in(ready))
        for kind in KINDS
    )
    pictures = items.union(seen).subquery()
    return select(pictures.c.sha256)


def keep_prepared(session: Session, model: str, vectors: dict[str, NDArray[np.float32]]) -> None:
    """Keep what a model makes of pictures."""
    rows = [
        {"model": model, "picture": picture, "embedding": np.asarray(vector, dtype="<f4").tobytes()}
        for picture, vector in vectors.items()
    ]
    if rows:
        session.execute(insert(PreparedVector).prefix_with("OR REPLACE", dialect="sqlite"), rows)


def vectors_of_model(session: Session, model: str, items: Sequence[int]) -> dict[int, bytes]:
    """What a model has made of these items, in use or prepared, by item."""
    made = select(Item.id, Item.embedding).where(Item.id.in_(items), Item.model == model)
    prepared = select(Item.id, PreparedVector.embedding).where(
        Item.id.in_(items), Item.model != model, PreparedVector.picture == Item.sha256, PreparedVector.model == model
    )
    return {row.id: row.embedding for query in (made, prepared) for row in session.execute(query)}


def use_prepared(session: Session, model: str, before: str) -> None:
    """Put a model's vectors into use; those of `before` are prepared from then on, so that the way back is short."""
    for kind in KINDS:
        others = select(kind.sha256, kind.model, kind.embedding).where(kind.sha256.is_not(None), kind.model != model)
        session.execute(
            insert(PreparedVector)
            .prefix_with("OR REPLACE", dialect="sqlite")
            .from_select(["picture", "model", "embedding"], others)
        )
        mine = select(PreparedVector.embedding).where(
            PreparedVector.model == model, PreparedVector.picture == kind.sha256
        )
        session.execute(
            update(kind)
            .where(kind.model != model, mine.exists())
            .values(model=model, embedding=mine.scalar_subquery())
            .execution_options(synchronize_session=False)
        )
    kept = PreparedVector.model != model if before == model else PreparedVector.model == before
    session.execute(delete(PreparedVector).where(~kept))


def note_changes(session: Session, pictures: Collection[str]) -> None:
    """Let indexes look again at the items with these pictures."""
    for name in pictures:
        for item in session.scalars(select(Item).where(Item.sha256 == name)):
            session.add(Change(collection_id=item.collection_id, item_id=item.id))


def vectors_alone(session: Session, model: str, starter_rows: int) -> int:
    """How many items no other model can look at, as they have no picture and are not among the starter's rows."""
    alone = session.scalars(select(Item.details).where(Item.sha256.is_(None), Item.model != model))
    rows = (details.get(STARTER_ROW) for details in alone)
    return sum(not (type(row) is int and 0 <= row < starter_rows) for row in rows)
