"""What the API answers: the one description shared by the server, its client and the page."""

import unicodedata
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MAX_LABEL = 200
MAX_NAME = 100
MAX_NEIGHBOURS = 100


def clean(text: str) -> str:
    """One line of visible text, without blanks around it; any script, emoji too."""
    text = unicodedata.normalize("NFC", text).strip()
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text):
        raise ValueError("must be one line of text, without control characters")
    if not text:
        raise ValueError("must not be empty")
    return text


def clean_name(name: str) -> str:
    """A name that can stand in an address."""
    name = clean(name)
    if "/" in name or "\\" in name or name in (".", ".."):
        raise ValueError("must not hold slashes")
    return name


Label = Annotated[str, AfterValidator(clean), Field(max_length=MAX_LABEL, examples=["sunflower"])]
CollectionName = Annotated[str, AfterValidator(clean_name), Field(max_length=MAX_NAME, examples=["garden"])]


class Problem(BaseModel):
    """An error (RFC 9457). `type` is stable; `detail` says what was wrong and what to do."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    request_id: str


class Health(BaseModel):
    """Whether the service is alive or ready."""

    status: str = Field(examples=["ready"])
    reason: str | None = Field(default=None, description="what is in the way")


class SimilarityScale(BaseModel):
    """Percentiles 0–100 of the cosine similarity over pairs of validation pictures."""

    measured_on: str
    different: list[float] = Field(description="pairs of different kinds")
    same: list[float] = Field(description="pairs of the same kind")


class ModelInfo(BaseModel):
    """One loaded model."""

    name: str = Field(examples=["embedder"])
    version: int = Field(examples=[1])
    task: str = Field(examples=["embed"])
    title: str
    sha256: str
    dim: int | None = Field(default=None, description="length of the vectors it makes", examples=[512])
    symbols: str | None = Field(default=None, description="characters it can read")
    labels: list[str] | None = Field(default=None, description="what it can name")
    unsure_below: float | None = Field(default=None, description="a best probability below this is called unsure")
    metrics: dict[str, float]
    training_data: list[str]
    licence: str
    similarity: SimilarityScale | None = None
    runtime: str = Field(description="what runs it, and where", examples=["onnx (CPUExecutionProvider)"])
    versions: list[int] = Field(description="versions in the model repository that can be switched to", examples=[[1]])


class ActivateRequest(BaseModel):
    """Which version should answer."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, le=2**31 - 1, examples=[2])
    force: bool = Field(
        default=False, description="even if its figures are worse, or items without a picture would be lost"
    )


class Activation(BaseModel):
    """What became of a switch to another version."""

    name: str = Field(examples=["embedder"])
    version: int = Field(description="the version that was asked for", examples=[2])
    previous: int | None = Field(description="the version in use before; null for a model that is new", examples=[1])
    state: Literal["active", "preparing"] = Field(
        description="an embedder looks at all pictures first, in a job; the previous version answers meanwhile"
    )
    job: str | None = Field(default=None, description="its job, to be followed at /v1/jobs/{id}")


class ModelList(BaseModel):
    """All models in use."""

    models: list[ModelInfo]


class ModelRef(BaseModel):
    """Which model gave an answer."""

    name: str = Field(examples=["embedder"])
    version: int = Field(examples=[1])
    sha256: str


class EmbedResponse(BaseModel):
    """One unit vector for each image, in the order sent."""

    model: ModelRef
    dim: int = Field(examples=[512])
    embeddings: list[list[float]] = Field(description="[images, dim]; every row has length 1")


class Alternative(BaseModel):
    """What may stand in place of a character."""

    text: str = Field(description="another character, several, or nothing at all")
    confidence: float = Field(ge=0, le=1)


class CharacterReading(BaseModel):
    """One character of a word, and how sure it is."""

    text: str
    confidence: float = Field(ge=0, le=1)
    alternatives: list[Alternative] = Field(description="most probable first")


class WordReading(BaseModel):
    """What stands on one crop."""

    text: str = Field(description="printable ASCII; empty if nothing could be read", examples=["Readleaf"])
    confidence: float = Field(
        ge=0, le=1, description="how probably its letters and digits are right, whatever case and signs"
    )
    turned: int = Field(description="degrees clockwise by which the crop was turned to be read: 0, 90 or 270")
    characters: list[CharacterReading] | None = Field(default=None, description="with `details` only")


class RecognizeResponse(BaseModel):
    """One reading for each crop, in the order sent."""

    model: ModelRef
    results: list[WordReading]


class ImageSize(BaseModel):
    """Of the upright picture, in pixels."""

    width: int
    height: int


Polygon = Annotated[
    list[tuple[float, float]],
    Field(
        min_length=4,
        max_length=4,
        description="four corners (x, y) in pixels of the upright picture, from the text's own top left, clockwise",
        examples=[[(412.0, 96.5), (560.2, 101.0), (559.0, 141.3), (410.8, 136.8)]],
    ),
]


class FoundWord(BaseModel):
    """A word in a picture."""

    text: str = Field(description="printable ASCII", examples=["Readleaf"])
    confidence: float = Field(ge=0, le=1, description="how probably its letters and digits are right")
    detection_confidence: float = Field(ge=0, le=1, description="how surely there is a word")
    polygon: Polygon
    angle: float = Field(description="its direction of reading in degrees, clockwise from the horizontal, −180…180")


class FoundLine(BaseModel):
    """Words in a row."""

    text: str
    polygon: Polygon
    words: list[int] = Field(description="places in the list of words, in reading order")
    block: int = Field(description="lines of one column, sign or label share a number")


class ReadResponse(BaseModel):
    """All that stands in a picture."""

    image: ImageSize
    text: str = Field(description="line by line in reading order, an empty line between blocks")
    lines: list[FoundLine] = Field(description="in reading order")
    words: list[FoundWord]
    models: list[ModelRef]


class Prediction(BaseModel):
    """A label and how probable it is."""

    label: str = Field(examples=["sunflower"])
    probability: float = Field(ge=0, le=1, description="calibrated: of answers with 0.8, about 8 in 10 are right")


class PictureRegion(BaseModel):
    """A part of the upright picture, in its pixels."""

    left: int
    top: int
    width: int
    height: int


class HeatMap(BaseModel):
    """What the model looked at for its best answer."""

    label: str
    region: PictureRegion = Field(description="the part of the picture that was looked at; the grid lies over it")
    values: list[list[float]] = Field(
        description="rows from top to bottom: how much each place speaks for the label, as a share of the strongest"
    )


class ClassifyResponse(BaseModel):
    """What a picture shows, as far as one can tell."""

    image: ImageSize
    predictions: list[Prediction] = Field(description="most probable first")
    unsure: bool = Field(description="the best answer is not probable enough to be relied on")
    model: ModelRef
    heatmap: HeatMap | None = Field(default=None, description="with `explain` only")


class NewCollection(BaseModel):
    """A collection to be made."""

    model_config = ConfigDict(extra="forbid")

    name: CollectionName
    description: str = Field(default="", max_length=2000)


class LabelCount(BaseModel):
    """A label and how many items have it."""

    label: str
    items: int


class CollectionInfo(BaseModel):
    """A collection and what is in it."""

    name: str
    description: str
    items: int = Field(description="how many items it holds, labelled or not")
    outdated: int = Field(description="items that no search finds until a rebuild: another model made their vectors")
    labels: list[LabelCount] = Field(description="most frequent first")


class CollectionList(BaseModel):
    """All collections."""

    collections: list[CollectionInfo]


class ItemInfo(BaseModel):
    """A picture in a collection."""

    id: int
    collection: str
    label: str | None
    metadata: dict[str, Any]
    sha256: str | None = Field(description="of the picture's file; null if only the vector is known")
    media_type: str | None
    width: int | None = Field(description="of the upright picture")
    height: int | None
    model: str = Field(description="sha256 of the model that made its vector")
    image_url: str | None
    thumbnail_url: str | None
    created: datetime


class ItemPage(BaseModel):
    """Some items, and how to ask for the next ones."""

    items: list[ItemInfo]
    next_cursor: int | None = Field(description="give it as `cursor`; null at the end")


class ItemChange(BaseModel):
    """What shall be different; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    label: Label | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class NeighbourInfo(BaseModel):
    """An item that looks like the query."""

    item: int
    label: str | None
    score: float = Field(ge=0, le=1, description="cosine similarity c as (1 + c) / 2")
    image_url: str | None
    thumbnail_url: str | None


class LabelVote(BaseModel):
    """What the neighbours say the query is."""

    label: str
    score: float = Field(ge=0, le=1, description="share of the vote, weighted by similarity")
    votes: int


class SearchResponse(BaseModel):
    """The nearest items, and what they make of the query."""

    neighbours: list[NeighbourInfo] = Field(description="nearest first")
    labels: list[LabelVote] = Field(description="best first; empty if no neighbour has a label")
    rejected: bool = Field(description="nothing in the collection is near enough to name the query by")
    reason: str | None = Field(description="why it was rejected")
    model: ModelRef


class JobErrorInfo(BaseModel):
    """A file that could not be taken."""

    file: str
    message: str


class JobInfo(BaseModel):
    """Work in the background."""

    id: str
    kind: str = Field(description="import, rebuild or activate", examples=["import"])
    state: str = Field(description="waiting, running, done, failed or cancelled", examples=["running"])
    collection: str | None = Field(description="the collection worked on; null for activate, which is for all")
    model: str | None = Field(default=None, description="for activate: the model that is switched")
    version: int | None = Field(default=None, description="for activate: the version that is to answer")
    total: int | None = Field(description="files, items or pictures in all")
    done: int = Field(description="of these, looked at so far")
    refused: int = Field(description="files that could not be taken")
    errors: list[JobErrorInfo] = Field(description="why, for the first thousand of them")
    message: str
    created: datetime
    finished: datetime | None


class JobList(BaseModel):
    """The latest jobs."""

    jobs: list[JobInfo]
