"""What looks like a picture, and what it is therefore likely to be."""

from typing import Annotated

from fastapi import APIRouter, File, Form, UploadFile
from starlette.concurrency import run_in_threadpool

from serving import errors
from serving.images import Region
from serving.neighbour_answers import neighbour_info
from serving.pipelines.upload import Upload
from serving.pipelines.vote import reason_to_reject, score_of, vote
from serving.problems import describe
from serving.routes.collections import NameInPath
from serving.schemas import MAX_NEIGHBOURS, Label, LabelVote, ModelRef, SearchResponse
from serving.services import CurrentServices, CurrentTimings

router = APIRouter(prefix="/v1/collections/{collection}", tags=["search"])

REGION = r"^\d{1,6},\d{1,6},[1-9]\d{0,5},[1-9]\d{0,5}$"  # left,top,width,height in pixels of the upright picture


@router.post("/search", responses=describe(errors.CollectionMissing, errors.RegionOutside, *errors.BAD_PICTURE))
async def search(
    collection: NameInPath,
    image: Annotated[UploadFile, File(description="JPEG, PNG, WebP, BMP or TIFF")],
    services: CurrentServices,
    timings: CurrentTimings,
    k: Annotated[int, Form(ge=1, le=MAX_NEIGHBOURS, description="how many neighbours to show")] = 10,
    label: Annotated[Label | None, Form(description="look at items of this label only")] = None,
    region: Annotated[
        str | None,
        Form(pattern=REGION, description="look at this part of the picture only", examples=["120,80,300,240"]),
    ] = None,
) -> SearchResponse:
    """The nearest items, their vote on what the picture is, or why it is none of them."""
    await run_in_threadpool(services.library.get_collection_id, collection)  # before the work, not after it
    async with services.admission.enter(timings):
        part = None if region is None else Region(*map(int, region.split(",")))
        (vector,) = await services.answering.embedder([Upload("image", await image.read(), part)], timings)
        with timings.measure("search"):
            indexes = services.answering.indexes
            found = await run_in_threadpool(services.library.search, collection, vector, k, label, indexes=indexes)
    manifest = services.answering.embedder.manifest
    similarity = manifest.similarity
    reason = reason_to_reject(found, similarity.reject_below if similarity else None)
    return SearchResponse(
        neighbours=[neighbour_info(collection, each.item, score_of(each.similarity)) for each in found],
        labels=[LabelVote(label=each.label, score=each.share, votes=each.votes) for each in vote(found)],
        rejected=reason is not None,
        reason=reason,
        model=ModelRef(name=manifest.name, version=manifest.version, sha256=manifest.sha256),
    )
