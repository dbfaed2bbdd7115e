"""Several pictures in one request."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import File, UploadFile

from serving.errors import TooManyImages
from serving.pipelines.upload import Upload

Images = Annotated[
    list[UploadFile],
    File(description="1–64 pictures: JPEG, PNG, WebP, BMP or TIFF", json_schema_extra={"minItems": 1}),
]


def refuse_too_many(images: Sequence[UploadFile], most: int) -> None:
    """Raise TooManyImages before any of them is read."""
    if len(images) > most:
        raise TooManyImages(f"{len(images)} images were sent; at most {most} are accepted in one call")


async def read_uploads(images: Sequence[UploadFile]) -> list[Upload]:
    """All of them, with names to call them by in an error."""
    return [
        Upload(f"image {number} ({image.filename or 'no name'})", await image.read())
        for number, image in enumerate(images, start=1)
    ]
