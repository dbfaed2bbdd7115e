"""What the API answers about observations, votes and taxa: shared by the server, its client and the page."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from serving.schemas import CollectionName, Label, ModelRef, NeighbourInfo, clean

VoteKind = Literal["taxon", "new_taxon", "cannot_tell", "not_an_organism"]
ObservationStatus = Literal["needs_review", "verified", "rejected", "uncertain"]
LARGEST_ID = 2**63 - 1  # of the database
Number = Annotated[int, Field(ge=1, le=LARGEST_ID)]
Rank = Annotated[str, AfterValidator(clean), Field(max_length=50, examples=["species"])]
MOST_SKIPPED = 500


class TaxonInfo(BaseModel):
    """A species, genus or any other group."""

    id: int
    name: str = Field(description="the accepted name; the label of items that show it", examples=["Quercus robur"])
    rank: str = Field(examples=["species"])
    parent: int | None = Field(description="the taxon it belongs to")
    synonyms: list[str]
    common_names: list[str]
    gbif_key: int | None


class TaxonList(BaseModel):
    """Some taxa, and how to ask for the next ones."""

    taxa: list[TaxonInfo]
    next_cursor: int | None


class NewTaxonRequest(BaseModel):
    """A taxon to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Label
    rank: Rank = "unranked"
    parent: Number | None = None
    synonyms: list[Label] = Field(default_factory=list, max_length=100)
    common_names: list[Label] = Field(default_factory=list, max_length=100)
    gbif_key: Number | None = None


class RenameRequest(BaseModel):
    """Another accepted name."""

    model_config = ConfigDict(extra="forbid")

    name: Label


class PlaceRequest(BaseModel):
    """Another parent, or none."""

    model_config = ConfigDict(extra="forbid")

    parent: Number | None


class MergeRequest(BaseModel):
    """The taxon that remains."""

    model_config = ConfigDict(extra="forbid")

    into: Number


class SplitRequest(BaseModel):
    """What a taxon becomes; one of the parts may keep its name."""

    model_config = ConfigDict(extra="forbid")

    parts: list[NewTaxonRequest] = Field(min_length=2, max_length=50)


class TaxonPrediction(BaseModel):
    """What an organism may be, and why."""

    taxon: TaxonInfo | None = Field(description="null for a label that no observation or taxonomy has named yet")
    label: str = Field(description="its accepted name, or the collection's label")
    score: float = Field(ge=0, le=1, description="neighbours and classifier together")
    neighbours: float = Field(ge=0, le=1, description="share of the neighbours' vote, weighted by similarity")
    classifier: float | None = Field(
        description="the classifier's calibrated probability among the collection's labels; null if it does not know it"
    )
    evidence: list[NeighbourInfo] = Field(description="the nearest items with this label")


class IdentifyResponse(BaseModel):
    """What one organism probably is."""

    predictions: list[TaxonPrediction] = Field(description="best first; empty if nothing can be said")
    rejected: bool = Field(description="nothing in the collection looks enough like it")
    reason: str | None
    models: list[ModelRef]


class ObservationImageInfo(BaseModel):
    """A picture of an observation."""

    image_url: str
    thumbnail_url: str
    width: int
    height: int
    organ: str | None
    item: int | None = Field(description="the item of the collection that shows it, once it is verified")


class VoteInfo(BaseModel):
    """What somebody said."""

    id: int
    who: str
    kind: str
    taxon: TaxonInfo | None
    comment: str
    withdrawn: bool
    created: datetime


class EventInfo(BaseModel):
    """Something that happened."""

    number: int
    kind: str
    who: str
    facts: dict[str, Any]
    at: datetime


class LeaseInfo(BaseModel):
    """Who is looking at it."""

    who: str
    expires: datetime


class ObservationInfo(BaseModel):
    """One organism, what the models and people say of it, and all that happened."""

    id: int
    collection: str
    status: ObservationStatus
    taxon: TaxonInfo | None = Field(description="what the votes made of it")
    images: list[ObservationImageInfo]
    observed: str | None
    latitude: float | None
    longitude: float | None
    place: str
    observer: str
    notes: str
    submitter: str
    identification: IdentifyResponse | None = Field(description="null while it is hidden: blind review, not voted yet")
    votes: list[VoteInfo] = Field(description="withdrawn ones too; other people's are hidden in blind review")
    history: list[EventInfo]
    lease: LeaseInfo | None
    created: datetime
    decided: datetime | None


class ObservationPage(BaseModel):
    """Some observations, and how to ask for the next ones."""

    observations: list[ObservationInfo]
    next_cursor: int | None


class NextRequest(BaseModel):
    """What somebody wants to review."""

    model_config = ConfigDict(extra="forbid")

    collection: CollectionName
    skip: list[Number] = Field(
        default_factory=list, max_length=MOST_SKIPPED, description="observations to leave out for now"
    )


class NextResponse(BaseModel):
    """An observation, leased to who asked, and how many wait."""

    observation: ObservationInfo
    waiting: int = Field(description="observations in the queue, this one included")


class VoteRequest(BaseModel):
    """What somebody says an observation is."""

    model_config = ConfigDict(extra="forbid")

    kind: VoteKind
    taxon_id: Number | None = Field(default=None, description="with `taxon`: any rank")
    name: Label | None = Field(default=None, description="with `new_taxon`")
    rank: Rank = "species"
    parent: Number | None = None
    comment: str = Field(default="", max_length=2000)

    @model_validator(mode="after")
    def _is_whole(self) -> "VoteRequest":
        if (self.kind == "taxon") != (self.taxon_id is not None):
            raise ValueError("`taxon_id` goes with the kind taxon, and only with it")
        if (self.kind == "new_taxon") != (self.name is not None):
            raise ValueError("`name` goes with the kind new_taxon, and only with it")
        return self


class AccuracyInfo(BaseModel):
    """How often the first prediction was what experts decided, or something more exact."""

    right: int
    total: int = Field(description="verified observations")
    silent: int = Field(description="of these, how many had no prediction; they are not right")
    left_out: int = Field(description="rejected or uncertain: there is nothing to compare with")
    share: float | None
    low: float | None = Field(description="the interval that holds the share in 95 of 100 cases")
    high: float | None


class ConfusionInfo(BaseModel):
    """What experts made of a prediction."""

    predicted: str
    decided: str
    count: int


class FiguresInfo(BaseModel):
    """How a collection's review goes."""

    statuses: dict[str, int] = Field(description="observations by status")
    waiting: int
    decisions_last_day: int
    decisions_an_hour: float | None = Field(description="over the hours of the last day in which there were any")
    votes: int = Field(description="that stand")
    people: int
    compared: int = Field(description="observations with two standing votes or more")
    agreement: float | None = Field(description="Krippendorff's alpha over these; null where it says nothing")
    accuracy: AccuracyInfo = Field(description="of the model, on the random share")
    biased_accuracy: AccuracyInfo = Field(description="on all that is decided; doubtful ones are decided first")
    confusions: list[ConfusionInfo] = Field(description="what experts correct most")


class SkippedRow(BaseModel):
    """A row that could not be taken."""

    line: int
    reason: str


class TaxaImported(BaseModel):
    """What became of a taxonomy's rows."""

    made: int
    known: int = Field(description="taxa that were there already")
    skipped: list[SkippedRow] = Field(description="the first thousand")


class PolicyInfo(BaseModel):
    """How the observations of a collection are decided."""

    model_config = ConfigDict(extra="forbid")

    rule: Literal["one_expert", "two_thirds"] = "one_expert"
    blind: bool = Field(default=False, description="hide what the models say until one has voted")
    random_share: float = Field(default=0.1, ge=0, le=1, description="kept apart to measure the models by")
