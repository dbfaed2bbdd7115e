"""Many rows at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import insert
from sqlalchemy.orm import Session

from serving.store.tables import Change, Collection, Item, now


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
