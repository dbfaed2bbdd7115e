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
    outdated = session.scalars(select(Item).where(Item.collection_id == collection.id, Item.model != model)).all()
    renewed = [item for item in outdated if item.details.get(STARTER_ROW, len(vectors)) < len(vectors)]
    for item in renewed:
        item.model, item.embedding = model, np.asarray(vectors[item.details[STARTER_ROW]], dtype="<f4").tobytes()
        session.add(Change(collection_id=collection.id, item_id=item.id))
    return len(renewed)
