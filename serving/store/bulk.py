"""Many rows at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from serving.store.tables import Change, Collection, Item, now

STARTER_ROW = "starter"  # in an item's details: its row among the starter's vectors


def insert_vectors(
    session: Session,
    collection: Collection,
    model: str,
    vectors: NDArray[np.float32],
    labels: Sequence[str | None],
    details: Sequence[dict[str, Any]],
) -> None:
    """Items of which only the vectors are known, [N, dim], and the changes that the index follows."""
    rows: list[dict[str, Any]] = [
        {
            "collection_id": collection.id,
            "label": label,
            "details": known,
            "model": model,
            "embedding": np.asarray(vector, dtype="<f4").tobytes(),
            "created": now(),
        }
        for vector, label, known in zip(vectors, labels, details, strict=True)
    ]
    made = session.scalars(insert(Item).returning(Item.id), rows).all()
    session.execute(insert(Change), [{"collection_id": collection.id, "item_id": number} for number in made])


def renew_vectors(session: Session, collection: Collection, model: str, vectors: NDArray[np.float32]) -> int:
    """Replace vectors of the starter that another model made, whatever became of their labels; returns how many."""
    # Details are anybody's to write: an item with a picture is never the starter's, and a row must be one.
    outdated = select(Item).where(Item.collection_id == collection.id, Item.model != model, Item.sha256.is_(None))
    count = 0
    for item in session.scalars(outdated).all():
        row = item.details.get(STARTER_ROW)
        if type(row) is int and 0 <= row < len(vectors):
            item.model, item.embedding = model, np.asarray(vectors[row], dtype="<f4").tobytes()
            session.add(Change(collection_id=collection.id, item_id=item.id))
            count += 1
    return count


def renew_starters(session: Session, model: str, vectors: NDArray[np.float32]) -> None:
    """The same in every collection: the starter's items may have been renamed with theirs."""
    for collection in session.scalars(select(Collection)).all():
        renew_vectors(session, collection, model, vectors)
