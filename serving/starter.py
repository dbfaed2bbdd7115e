"""The collection a new data folder starts with: vectors and labels of pictures that may not be shipped themselves.

`starter.npz` lies beside the model that made its vectors; `readleaf export starter` writes it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serving.schemas import clean, clean_name


@dataclass(frozen=True)
class Starter:
    """What the collection holds."""

    name: str
    description: str
    vectors: NDArray[np.float32]  # [N, dim], unit length
    labels: list[str]
    sources: list[str]  # the data set each came from

    def write(self, file: Path, model: str) -> None:
        """Write it for the model (sha256) that made the vectors; half precision is plenty for a ranking."""
        np.savez_compressed(
            file,
            model=np.array(model),
            name=np.array(self.name),
            description=np.array(self.description),
            vectors=self.vectors.astype(np.float16),
            labels=np.array(self.labels),
            sources=np.array(self.sources),
        )


def read_starter(file: Path, model: str, dim: int) -> Starter:
    """Read what `write` wrote; raises ValueError if it is damaged or its vectors are another model's."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            made_by = str(stored["model"])
            vectors = stored["vectors"].astype(np.float32)
            starter = Starter(
                clean_name(str(stored["name"])),
                str(stored["description"]),
                vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
                [clean(label) for label in stored["labels"].tolist()],
                stored["sources"].tolist(),
            )
    except Exception as error:  # numpy and zipfile raise many kinds on a damaged file
        raise ValueError(f"{file} cannot be read ({error})") from error
    if made_by != model:
        raise ValueError(f"{file} holds vectors of another model")
    if not len(vectors) or not vectors.shape == (len(starter.labels), dim) == (len(starter.sources), dim):
        raise ValueError(f"{file} holds vectors {list(vectors.shape)} for {len(starter.labels)} labels")
    return starter
