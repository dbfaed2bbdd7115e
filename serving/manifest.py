"""`manifest.json`: all that a caller must know of an exported model, and nothing more.

`export` writes it, the repository reads it. Unknown or missing fields are errors: a manifest that is
half understood would serve wrong answers in silence.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from serving.errors import ManifestInvalid

Task = Literal["embed"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tensor(_Frozen):
    """An input or output of the graph; -1 stands for the batch."""

    name: str
    dtype: Literal["uint8", "float32", "int64"]
    shape: list[int]


class Preprocessing(_Frozen):
    """How a picture becomes the graph's raw pixels: scaled and cropped in the middle to width × height."""

    width: int = Field(gt=0)
    height: int = Field(gt=0)


class Similarity(_Frozen):
    """What a cosine similarity of this embedder means: its 101 percentiles over pairs of validation pictures."""

    measured_on: str
    different: list[float] = Field(min_length=101, max_length=101, description="pairs of different kinds")
    same: list[float] = Field(min_length=101, max_length=101, description="pairs of the same kind")
    reject_below: float | None = Field(
        default=None, ge=-1, le=1, description="a picture whose nearest neighbour is less alike is none of the known"
    )


class Manifest(_Frozen):
    """One version of one model."""

    schema_version: Literal[1] = 1
    name: Name
    version: int = Field(ge=1)
    task: Task
    title: str
    sha256: Sha256
    inputs: list[Tensor] = Field(min_length=1)
    outputs: list[Tensor] = Field(min_length=1)
    max_batch: int = Field(ge=1)
    preprocessing: Preprocessing
    dim: int = Field(gt=0)
    similarity: Similarity | None = None
    metrics: dict[str, float]
    training_data: list[str]
    licence: str

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "Manifest":
        frame = [-1, self.preprocessing.height, self.preprocessing.width, 3]
        if self.inputs[0].shape != frame:
            raise ValueError(f"inputs[0].shape is {self.inputs[0].shape}, but preprocessing makes {frame}")
        if self.outputs[0].shape != [-1, self.dim]:
            raise ValueError(f"outputs[0].shape is {self.outputs[0].shape}, but dim is {self.dim}")
        return self

    @property
    def model_file(self) -> str:
        """Where the graph lies, relative to the model's folder (Triton's layout)."""
        return f"{self.version}/model.onnx"

    def write(self, folder: Path) -> None:
        """Write `manifest.json` into the model's folder."""
        (folder / "manifest.json").write_text(self.model_dump_json(indent=1, exclude_none=True) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Read and check `folder/manifest.json`."""
    file = folder / "manifest.json"
    try:
        manifest = Manifest.model_validate_json(file.read_bytes())
    except OSError as error:
        raise ManifestInvalid(f"{file} cannot be read ({error.strerror}); export the model again") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ManifestInvalid(f"{file}: {where}: {first['msg']}; export the model again") from error
    if manifest.name != folder.name:
        raise ManifestInvalid(
            f"{file} describes {manifest.name!r}, but lies in the folder {folder.name!r}; rename the folder"
        )
    return manifest
