"""`manifest.json`: all that a caller must know of an exported model, and nothing more.

`export` writes it, the repository reads it. Unknown or missing fields are errors: a manifest that is
half understood would serve wrong answers in silence.
"""

import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from serving.errors import ManifestInvalid

NAME_PATTERN = re.compile(r"[a-z][a-z0-9_-]{0,62}")  # of a model
Name = Annotated[str, Field(pattern=rf"^{NAME_PATTERN.pattern}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
MODEL_FILE = "model.onnx"  # in the folder of its version
LANGUAGE = "language.npz"  # beside a recogniser


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tensor(_Frozen):
    """An input or output of the graph; -1 stands for the batch, and for any other length that may vary."""

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
    familiar_from: float | None = Field(
        default=None,
        description="an organism less at home among its neighbours than this is none of the known; "
        "`serving/pipelines/identify.py` says how that is counted",
    )


class Canvas(_Frozen):
    """How a word's crop becomes the graph's raw pixels.

    Scaled to the height, filled up with grey on the right to the width, or to so many steps more as it needs; what is
    longer than `longest` is squeezed into it. A crop `tall` times as high as wide is also read on either side, and
    such a reading taken if it is surer by `surer_by`.
    """

    height: int = Field(gt=0)
    width: int = Field(gt=0)
    step: int = Field(gt=0)
    longest: int = Field(gt=0)
    tall: float = Field(gt=1)
    surer_by: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "Canvas":
        if self.longest < self.width:
            raise ValueError(f"longest is {self.longest}, less than the width {self.width}")
        return self


class Probe(_Frozen):
    """What the graph answers to a picture that anybody can draw (`serving/runtime/probe.py`).

    Whatever runs the graph is asked before it is trusted: a driver, a backend or a file may be wrong without a word.
    """

    shape: list[int] = Field(min_length=3, max_length=3, description="height, width and colours of the picture")
    answers: list[float] = Field(min_length=1, description="some numbers of the answer, evenly spaced")


class Manifest(_Frozen):
    """One version of one model; each task adds what its callers must know."""

    judged_by: ClassVar[re.Pattern[str]]  # metrics by which two versions are compared; more is better

    schema_version: Literal[1] = 1
    name: Name
    version: int = Field(ge=1)
    task: str
    title: str
    sha256: Sha256
    inputs: list[Tensor] = Field(min_length=1)
    outputs: list[Tensor] = Field(min_length=1)
    max_batch: int = Field(ge=1)
    metrics: dict[str, float]
    training_data: list[str]
    licence: str
    probe: Probe | None = None

    @property
    def example_shape(self) -> tuple[int, ...]:
        """The shape of one picture as the graph takes it, without the batch."""
        return tuple(self.inputs[0].shape[1:])

    @property
    def files(self) -> dict[str, str]:
        """Files of the version's folder that must be what they were, and their sha256."""
        return {MODEL_FILE: self.sha256}

    @property
    def figures(self) -> dict[str, float]:
        """The metrics by which versions are compared."""
        return {name: value for name, value in self.metrics.items() if self.judged_by.search(name)}

    def write(self, folder: Path) -> None:
        """Write `manifest.json` into the version's folder."""
        (folder / "manifest.json").write_text(self.model_dump_json(indent=1, exclude_none=True) + "\n")


class EmbedderManifest(Manifest):
    """A model that makes vectors of pictures."""

    judged_by = re.compile(r"(^|/)r@1$")

    task: Literal["embed"] = "embed"
    preprocessing: Preprocessing
    dim: int = Field(gt=0)
    similarity: Similarity | None = None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "EmbedderManifest":
        frame = [-1, self.preprocessing.height, self.preprocessing.width, 3]
        if self.inputs[0].shape != frame:
            raise ValueError(f"inputs[0].shape is {self.inputs[0].shape}, but preprocessing makes {frame}")
        if self.outputs[0].shape != [-1, self.dim]:
            raise ValueError(f"outputs[0].shape is {self.outputs[0].shape}, but dim is {self.dim}")
        return self


class RecognizerManifest(Manifest):
    """A model that reads the word on a crop.

    Its outputs are `classes` [N, places, answers] and `probabilities` of the same shape: at each place the most
    probable answers, best first. A class is a place in `symbols`, or len(symbols) for no character. Places are columns
    of the crop, whose answers are joined as CTC does, or steps up to the first that is no character (attention).
    """

    judged_by = re.compile(r"^all/accuracy$")

    task: Literal["recognize"] = "recognize"
    canvas: Canvas
    symbols: str = Field(min_length=1)
    decoder: Literal["ctc", "attention"]
    temperature: float = Field(gt=0, allow_inf_nan=False)  # what scores of words are divided by to be believed
    language: Sha256 | None = None  # of `language.npz`

    @property
    def files(self) -> dict[str, str]:
        """The graph, and the language if there is one."""
        return super().files | ({LANGUAGE: self.language} if self.language else {})

    @property
    def example_shape(self) -> tuple[int, ...]:
        """The shape of one crop as the graph takes it, without the batch; wider ones are taken, too."""
        return self.canvas.height, self.canvas.width, 3

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "RecognizerManifest":
        frame = [-1, self.canvas.height, -1, 3]
        if self.inputs[0].shape != frame:
            raise ValueError(f"inputs[0].shape is {self.inputs[0].shape}, but the canvas makes {frame}")
        names = [tensor.name for tensor in self.outputs]
        if names != ["classes", "probabilities"]:
            raise ValueError(f"outputs are {', '.join(names)}; they must be classes, probabilities")
        return self


class Thresholds(_Frozen):
    """From which score on a cell counts as the heart of a word, and what was gathered from cells as a word."""

    heart: float = Field(gt=0, lt=1)
    word: float = Field(gt=0, lt=1)


class DetectorManifest(Manifest):
    """A model that finds words.

    Its input is a picture of any size that is a multiple of `multiple`; its output [N, h, w, 7] has a row for each
    cell of `stride` × `stride` pixels: how surely it is the heart of a word, and that word's box (cx, cy, w, h, cos,
    sin) in pixels, y downwards, (cos, sin) in reading direction.
    """

    judged_by = re.compile(r"^reading/end to end f1$")

    task: Literal["detect"] = "detect"
    stride: int = Field(gt=0)
    multiple: int = Field(gt=0)
    thresholds: Thresholds

    @property
    def example_shape(self) -> tuple[int, ...]:
        """The shape of a small picture as the graph takes it, without the batch."""
        return 2 * self.multiple, 2 * self.multiple, 3

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "DetectorManifest":
        if self.inputs[0].shape != [-1, -1, -1, 3]:
            raise ValueError(f"inputs[0].shape is {self.inputs[0].shape}; a detector takes [-1, -1, -1, 3]")
        if len(self.outputs) != 1:
            names = ", ".join(tensor.name for tensor in self.outputs)
            raise ValueError(f"outputs are {names}; a detector has one")
        if self.outputs[0].shape != [-1, -1, -1, 7]:
            raise ValueError(f"outputs[0].shape is {self.outputs[0].shape}; a detector answers [-1, -1, -1, 7]")
        if self.multiple % self.stride:
            raise ValueError(f"multiple is {self.multiple}, which is no multiple of the stride {self.stride}")
        return self


class ClassifierManifest(Manifest):
    """A model that names what a picture shows.

    Its outputs are `probabilities` [N, K], calibrated, and `evidence` [N, h, w, K]: what each place of the picture adds
    to the score of each class, beyond what it adds to all of them.
    """

    judged_by = re.compile(r"^val/accuracy$")

    task: Literal["classify"] = "classify"
    preprocessing: Preprocessing
    labels: list[str] = Field(min_length=2)
    prior: list[float] = Field(description="the share of each label among the training pictures")
    unsure_below: float = Field(ge=0, le=1, description="a best probability from which on the answer can be relied on")

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> "ClassifierManifest":
        frame = [-1, self.preprocessing.height, self.preprocessing.width, 3]
        if self.inputs[0].shape != frame:
            raise ValueError(f"inputs[0].shape is {self.inputs[0].shape}, but preprocessing makes {frame}")
        count = len(self.labels)
        if len(set(self.labels)) != count:
            raise ValueError("labels hold a name twice")
        if len(self.prior) != count or not all(share > 0 for share in self.prior):
            raise ValueError(f"prior must hold a share above 0 for each of {count} labels")
        names = [tensor.name for tensor in self.outputs]
        if names != ["probabilities", "evidence"]:
            raise ValueError(f"outputs are {', '.join(names)}; they must be probabilities, evidence")
        if any(tensor.shape[-1] != count for tensor in self.outputs):
            raise ValueError(f"outputs must end in {count}, a number for each label")
        return self


KnownManifest = EmbedderManifest | RecognizerManifest | DetectorManifest | ClassifierManifest
AnyManifest = Annotated[KnownManifest, Field(discriminator="task")]
_ADAPTER: TypeAdapter[KnownManifest] = TypeAdapter(AnyManifest)


def read_manifest(folder: Path) -> KnownManifest:
    """Read and check `manifest.json` in the folder of a version, such as `models/embedder/1`."""
    file = folder / "manifest.json"
    try:
        manifest = _ADAPTER.validate_json(file.read_bytes())
    except OSError as error:
        raise ManifestInvalid(f"{file} cannot be read ({error.strerror}); export the model again") from error
    except ValidationError as error:
        first = error.errors()[0]
        # The first part of a place only repeats the task; a task that is not known has no place.
        unknown_task = first["type"].startswith("union_tag")
        where = "task" if unknown_task else ".".join(map(str, first["loc"][1:])) or "the file"
        raise ManifestInvalid(f"{file}: {where}: {first['msg']}; export the model again") from error
    if (manifest.name, str(manifest.version)) != (folder.parent.name, folder.name):
        raise ManifestInvalid(
            f"{file} describes version {manifest.version} of {manifest.name!r}, but lies in "
            f"{folder.parent.name}/{folder.name}; rename the folders to {manifest.name}/{manifest.version}"
        )
    return manifest
