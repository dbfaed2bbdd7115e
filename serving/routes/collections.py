"""Collections: made, listed, deleted."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.concurrency import run_in_threadpool

from serving import errors
from serving.problems import describe
from serving.schemas import CollectionInfo, CollectionList, CollectionName, LabelCount, NewCollection
from serving.services import CurrentServices
from serving.store.questions import CollectionSummary

router = APIRouter(prefix="/v1/collections", tags=["collections"])

NameInPath = Annotated[CollectionName, Path(description="the collection's name")]


@router.get("")
async def list_collections(services: CurrentServices) -> CollectionList:
    """Every collection, by name."""
    found = await run_in_threadpool(services.library.list_collections)
    return CollectionList(collections=[_info(summary) for summary in found])


@router.post("", status_code=201, responses=describe(errors.CollectionExists, errors.RequestInvalid, errors.DiskFull))
async def create_collection(new: NewCollection, services: CurrentServices) -> CollectionInfo:
    """Make an empty collection."""
    return _info(await run_in_threadpool(services.library.create_collection, new.name, new.description))


@router.get("/{collection}", responses=describe(errors.CollectionMissing, errors.RequestInvalid))
async def get_collection(collection: NameInPath, services: CurrentServices) -> CollectionInfo:
    """One collection: how many items it holds, and of which labels."""
    return _info(await run_in_threadpool(services.library.get_collection, collection))


@router.delete("/{collection}", status_code=204, responses=describe(errors.CollectionMissing, errors.RequestInvalid))
async def delete_collection(collection: NameInPath, services: CurrentServices) -> None:
    """Delete a collection with all its items and pictures. There is no way back."""
    await run_in_threadpool(services.library.delete_collection, collection)


def _info(summary: CollectionSummary) -> CollectionInfo:
    labels = [LabelCount(label=label, items=count) for label, count in summary.labels.items()]
    return CollectionInfo(
        name=summary.name,
        description=summary.description,
        items=summary.items,
        outdated=summary.outdated,
        labels=labels,
    )
