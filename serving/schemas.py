"""What the API answers: the one description shared by the server, its client and the page."""

from pydantic import BaseModel, ConfigDict, Field


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
    dim: int = Field(description="length of the vectors it makes", examples=[1280])
    metrics: dict[str, float]
    training_data: list[str]
    licence: str
    similarity: SimilarityScale | None = None
    runtime: str = Field(description="what runs it, and where", examples=["onnx (CPUExecutionProvider)"])


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
    dim: int = Field(examples=[1280])
    embeddings: list[list[float]] = Field(description="[images, dim]; every row has length 1")
