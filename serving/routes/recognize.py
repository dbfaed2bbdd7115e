"""Crops of words in, their texts out."""

from typing import Annotated

from fastapi import APIRouter, Form

from serving import errors
from serving.pipelines.recognize import Reading
from serving.problems import describe
from serving.routes.uploads import Images, read_uploads, refuse_too_many
from serving.schemas import Alternative, CharacterReading, ModelRef, RecognizeResponse, WordReading
from serving.services import CurrentServices, CurrentTimings

router = APIRouter(prefix="/v1", tags=["read"])


@router.post(
    "/recognize",
    response_model_exclude_unset=True,
    responses=describe(errors.TooManyImages, *errors.BAD_PICTURE),
)
async def recognize(
    images: Images,
    services: CurrentServices,
    timings: CurrentTimings,
    details: Annotated[bool, Form(description="say how sure each character is, and what else it may be")] = False,
) -> RecognizeResponse:
    """Read the word on each of up to 64 crops. Printable ASCII only; of other scripts comes nothing, or nonsense."""
    refuse_too_many(images, services.settings.max_images)
    async with services.admission.enter(timings):
        readings = await services.answering.recognizer(await read_uploads(images), timings)
    manifest = services.answering.recognizer.manifest
    model = ModelRef(name=manifest.name, version=manifest.version, sha256=manifest.sha256)
    return RecognizeResponse(model=model, results=[_result(reading, details=details) for reading in readings])


def _result(reading: Reading, *, details: bool) -> WordReading:
    result = WordReading(text=reading.text, confidence=reading.confidence, turned=reading.turned)
    if details:
        result.characters = [
            CharacterReading(
                text=character.text,
                confidence=character.confidence,
                alternatives=[Alternative(text=text, confidence=value) for text, value in character.alternatives],
            )
            for character in reading.spelling.characters()
        ]
    return result
