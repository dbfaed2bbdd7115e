"""Pictures in, unit vectors out."""

from typing import Annotated

import orjson
from fastapi import APIRouter, File, Response, UploadFile

from serving import errors
from serving.pipelines.embed import Upload
from serving.problems import describe
from serving.schemas import EmbedResponse, ModelRef
from serving.services import CurrentServices, CurrentTimings

router = APIRouter(prefix="/v1", tags=["embed"])


@router.post(
    "/embed",
    response_model=EmbedResponse,
    responses=describe(errors.TooManyImages, *errors.BAD_PICTURE),
)
async def embed(
    images: Annotated[
        list[UploadFile],
        File(description="1–64 pictures: JPEG, PNG, WebP, BMP or TIFF", json_schema_extra={"minItems": 1}),
    ],
    services: CurrentServices,
    timings: CurrentTimings,
) -> Response:
    """Embed up to 64 pictures: one vector of length 1 for each, in the order sent."""
    most = services.settings.max_images
    if len(images) > most:
        raise errors.TooManyImages(f"{len(images)} images were sent; at most {most} are accepted in one call")
    async with services.admission.enter():
        uploads = [
            Upload(f"image {number} ({image.filename or 'no name'})", await image.read())
            for number, image in enumerate(images, start=1)
        ]
        vectors = await services.embedder(uploads, timings)
    manifest = services.embedder.manifest
    model = ModelRef(name=manifest.name, version=manifest.version, sha256=manifest.sha256)
    body = {"model": model.model_dump(), "dim": manifest.dim, "embeddings": vectors}
    # orjson writes float32 arrays as they are, in their shortest form.
    return Response(orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")
