"""Pictures of one organism in, what it probably is out."""

from typing import Annotated

from fastapi import APIRouter, File, Form, UploadFile
from starlette.concurrency import run_in_threadpool

from serving import errors
from serving.pipelines.priors import parse_prior
from serving.pipelines.upload import Upload
from serving.problems import describe
from serving.review_answers import identify_response
from serving.review_schemas import IdentifyResponse
from serving.routes.collections import NameInPath
from serving.services import CurrentServices, CurrentTimings

router = APIRouter(prefix="/v1/collections/{collection}", tags=["identify"])

MOST_PICTURES = 5
Pictures = Annotated[
    list[UploadFile], File(description="1 to 5 pictures of one organism", min_length=1, max_length=MOST_PICTURES)
]
Prior = Annotated[
    str | None,
    Form(
        description="JSON, label → weight: how many times as often it is met where the pictures were taken",
        examples=['{"sunflower": 3}'],
    ),
]


@router.post(
    "/identify",
    responses=describe(errors.CollectionMissing, errors.PriorInvalid, *errors.BAD_PICTURE),
)
async def identify(
    collection: NameInPath,
    images: Pictures,
    services: CurrentServices,
    timings: CurrentTimings,
    prior: Prior = None,
) -> IdentifyResponse:
    """What the organism probably is, with the look-alikes that say so; `rejected` if nothing looks enough like it."""
    labels = (await run_in_threadpool(services.library.get_collection, collection)).labels
    weights = parse_prior(prior, list(labels) or [""]) if prior is not None else None
    async with services.admission.enter(timings):
        uploads = [Upload(f"images[{place}]", await image.read()) for place, image in enumerate(images)]
        looked = await services.answering.identifier(collection, uploads, labels, timings, prior=weights)
    known = await run_in_threadpool(services.desk.known_taxa, [each.label for each in looked.found.suggestions])
    return identify_response(looked, collection, known)
