"""Pictures in, unit vectors out."""

import orjson
from fastapi import APIRouter, Response

from serving import errors
from serving.problems import describe
from serving.routes.uploads import Images, read_uploads, refuse_too_many
from serving.schemas import EmbedResponse, ModelRef
from serving.services import CurrentServices, CurrentTimings

router = APIRouter(prefix="/v1", tags=["embed"])


@router.post(
    "/embed",
    response_model=EmbedResponse,
    responses=describe(errors.TooManyImages, *errors.BAD_PICTURE),
)
async def embed(
    images: Images,
    services: CurrentServices,
    timings: CurrentTimings,
) -> Response:
    """Embed up to 64 pictures: one vector of length 1 for each, in the order sent."""
    refuse_too_many(images, services.settings.max_images)
    async with services.admission.enter(timings):
        vectors = await services.answering.embedder(await read_uploads(images), timings)
    manifest = services.answering.embedder.manifest
    model = ModelRef(name=manifest.name, version=manifest.version, sha256=manifest.sha256)
    body = {"model": model.model_dump(), "dim": manifest.dim, "embeddings": vectors}
    # orjson writes float32 arrays as they are, in their shortest form.
    return Response(orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")
