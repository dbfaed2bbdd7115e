"""A picture in, what it shows out."""

from typing import Annotated

from fastapi import APIRouter, File, Form, UploadFile

from serving import errors
from serving.answers import classify_response
from serving.pipelines.priors import parse_prior
from serving.pipelines.upload import Upload
from serving.problems import describe
from serving.schemas import ClassifyResponse
from serving.services import CurrentServices, CurrentTimings

router = APIRouter(prefix="/v1", tags=["classify"])


@router.post(
    "/classify",
    response_model_exclude_none=True,
    responses=describe(errors.ModelMissing, errors.PriorInvalid, *errors.BAD_PICTURE),
)
async def classify(
    image: Annotated[UploadFile, File(description="JPEG, PNG, WebP, BMP or TIFF")],
    services: CurrentServices,
    timings: CurrentTimings,
    model: Annotated[
        str | None, Form(description="one of the models whose task is classify", examples=["classifier"])
    ] = None,
    prior: Annotated[
        str | None,
        Form(
            description="JSON, label → weight: how many times as often as in training it is met where the picture was "
            "taken; a label that is left out keeps 1",
            examples=['{"sunflower": 3}'],
        ),
    ] = None,
    top: Annotated[int, Form(ge=1, le=1000, description="how many labels to show")] = 5,
    explain: Annotated[bool, Form(description="add a map of what speaks for the best label")] = False,
) -> ClassifyResponse:
    """What the picture shows: calibrated probabilities of the labels that the model knows, and of nothing else."""
    classifier = services.answering.classifiers.named(model)
    weights = parse_prior(prior, classifier.manifest.labels) if prior is not None else None
    async with services.admission.enter(timings):
        upload = Upload("image", await image.read())
        found = await classifier(upload, timings, prior=weights, explain=explain)
    return classify_response(found, classifier.manifest, top)
