"""A picture in, its text out."""

from typing import Annotated

from fastapi import APIRouter, File, Form, UploadFile

from serving import errors
from serving.answers import read_response
from serving.pipelines.read import LEAST_SURE
from serving.pipelines.upload import Upload
from serving.problems import describe
from serving.schemas import ReadResponse
from serving.services import CurrentServices, CurrentTimings

router = APIRouter(prefix="/v1", tags=["read"])


@router.post("/read", responses=describe(*errors.BAD_PICTURE))
async def read(
    image: Annotated[UploadFile, File(description="JPEG, PNG, WebP, BMP or TIFF")],
    services: CurrentServices,
    timings: CurrentTimings,
    min_confidence: Annotated[
        float, Form(ge=0, le=1, description="leave out words that are read less surely; most of them are none")
    ] = LEAST_SURE,
) -> ReadResponse:
    """Find and read all words of a picture, at any angle, in reading order. Printable ASCII only."""
    async with services.admission.enter(timings):
        page = await services.answering.reader(Upload("image", await image.read()), timings, least_sure=min_confidence)
    reader = services.answering.reader
    return read_response(page, [reader.detector.manifest, reader.recognizer.manifest])
