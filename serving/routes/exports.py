"""What a collection's review has made, as files that other programs read."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from serving import errors
from serving.problems import describe
from serving.review.darwin_core import darwin_core_archive
from serving.review.dataset_export import dataset_zip
from serving.schemas import CollectionName
from serving.services import CurrentServices

router = APIRouter(prefix="/v1/exports", tags=["exports"])

InQuery = Annotated[CollectionName, Query(description="the collection's name")]
ZIP: dict[int | str, dict[str, Any]] = {
    200: {"description": "a zip file, written while it is sent", "content": {"application/zip": {}}}
}
MISSING = describe(errors.CollectionMissing, errors.RequestInvalid)


@router.get("/dataset", response_class=StreamingResponse, responses=MISSING | ZIP)
async def export_dataset(collection: InQuery, services: CurrentServices) -> StreamingResponse:
    """A folder that `readleaf train` reads as it is: `labels.tsv` and every picture with a label."""
    await run_in_threadpool(services.library.get_collection_id, collection)
    return _zip(dataset_zip(services.library, collection), "dataset.zip")


@router.get("/darwin-core", response_class=StreamingResponse, responses=MISSING | ZIP)
async def export_darwin_core(collection: InQuery, services: CurrentServices) -> StreamingResponse:
    """A Darwin Core archive of the verified observations, with their pictures as multimedia."""
    await run_in_threadpool(services.library.get_collection_id, collection)
    return _zip(darwin_core_archive(services.library, collection), "observations.dwca.zip")


def _zip(chunks: Iterator[bytes], name: str) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(chunks, media_type="application/zip", headers=headers)
