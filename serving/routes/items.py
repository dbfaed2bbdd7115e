"""Items of a collection: added, looked at, relabelled, deleted."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, File, Form, Header, Path, Query, Response, UploadFile
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from serving import errors
from serving.images import ImageLimits, decode
from serving.images import describe as describe_picture
from serving.library import UNSET, NewPicture
from serving.neighbour_answers import picture_urls
from serving.pipelines.upload import Upload
from serving.problems import describe
from serving.routes.collections import NameInPath
from serving.schemas import ItemChange, ItemInfo, ItemPage, Label
from serving.services import CurrentServices, CurrentTimings, Services, with_current_vectors
from serving.store.pictures import THUMBNAIL_SIDE
from serving.store.tables import Item

router = APIRouter(prefix="/v1/collections/{collection}/items", tags=["items"])

LARGEST_ID = 2**63 - 1  # of the database
MAX_METADATA_BYTES = 20_000
ItemId = Annotated[int, Path(ge=1, le=LARGEST_ID)]


@router.post(
    "",
    status_code=201,
    responses=describe(
        errors.CollectionMissing, errors.PictureExists, *errors.BAD_PICTURE, errors.IdempotencyConflict, errors.DiskFull
    ),
)
async def add_item(
    collection: NameInPath,
    image: Annotated[UploadFile, File(description="JPEG, PNG, WebP, BMP or TIFF")],
    services: CurrentServices,
    timings: CurrentTimings,
    label: Annotated[Label | None, Form(description="what the picture shows")] = None,
    metadata: Annotated[str, Form(description="a JSON object with anything else worth keeping")] = "{}",
    idempotency_key: Annotated[
        str | None, Header(min_length=1, max_length=200, description="send a request again without adding twice")
    ] = None,
) -> ItemInfo:
    """Add a picture; a search finds it from the moment of the answer."""
    details = _parse_metadata(metadata)
    data = await image.read()

    async def add(services: Services) -> Item:
        embedder = services.answering.embedder
        async with services.admission.enter(timings):
            (vector,) = await embedder([Upload("image", data)], timings)
        picture = NewPicture(data, *describe_picture(data))
        with timings.measure("store"):
            return await run_in_threadpool(
                services.library.add_item,
                collection,
                vector=vector,
                label=label,
                details=details,
                picture=picture,
                idempotency_key=idempotency_key,
                model=embedder.manifest.sha256,
            )

    return item_info(collection, await with_current_vectors(services, add))


@router.get("", responses=describe(errors.CollectionMissing, errors.RequestInvalid))
async def list_items(
    collection: NameInPath,
    services: CurrentServices,
    label: Annotated[Label | None, Query(description="only items of this label")] = None,
    cursor: Annotated[int, Query(ge=0, le=LARGEST_ID, description="`next_cursor` of the page before")] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> ItemPage:
    """Items in the order they came, a page at a time."""
    found = await run_in_threadpool(services.library.list_items, collection, label=label, after=cursor, limit=limit + 1)
    page = [item_info(collection, item) for item in found[:limit]]
    return ItemPage(items=page, next_cursor=page[-1].id if len(found) > limit else None)


@router.get("/{item}", responses=describe(errors.ItemMissing, errors.CollectionMissing, errors.RequestInvalid))
async def get_item(collection: NameInPath, item: ItemId, services: CurrentServices) -> ItemInfo:
    """One item."""
    return item_info(collection, await run_in_threadpool(services.library.get_item, collection, item))


@router.patch(
    "/{item}",
    responses=describe(errors.ItemMissing, errors.CollectionMissing, errors.RequestInvalid, errors.DiskFull),
)
async def change_item(collection: NameInPath, item: ItemId, change: ItemChange, services: CurrentServices) -> ItemInfo:
    """Relabel an item, or replace its metadata; the next search shows it."""
    given = change.model_fields_set
    if "metadata" in given:
        try:
            _check_size(orjson.dumps(change.metadata))
        except TypeError as error:  # numbers beyond 64 bits, halves of characters
            raise errors.RequestInvalid(f"metadata holds what JSON cannot carry ({error})") from error
    changed = await run_in_threadpool(
        services.library.update_item,
        collection,
        item,
        label=change.label if "label" in given else UNSET,
        details=change.metadata if "metadata" in given else UNSET,
    )
    return item_info(collection, changed)


@router.delete(
    "/{item}",
    status_code=204,
    responses=describe(errors.ItemMissing, errors.CollectionMissing, errors.RequestInvalid),
)
async def delete_item(collection: NameInPath, item: ItemId, services: CurrentServices) -> None:
    """Delete an item; the next search does not find it."""
    await run_in_threadpool(services.library.delete_item, collection, item)


@router.get(
    "/{item}/image",
    response_class=Response,
    responses=describe(errors.PictureMissing, errors.ItemMissing, errors.CollectionMissing, errors.RequestInvalid)
    | {200: {"description": "the picture as it was sent", "content": {"image/*": {}}}},
)
async def get_image(collection: NameInPath, item: ItemId, services: CurrentServices) -> Response:
    """The picture, byte for byte as it was sent."""
    found = await run_in_threadpool(services.library.get_item, collection, item)
    data = await run_in_threadpool(services.library.read_picture, found)
    return Response(data, media_type=found.media_type, headers=_forever(found))


@router.get(
    "/{item}/thumbnail",
    response_class=Response,
    responses=describe(errors.PictureMissing, errors.ItemMissing, errors.CollectionMissing, errors.RequestInvalid)
    | {200: {"description": f"a JPEG of at most {THUMBNAIL_SIDE} pixels a side", "content": {"image/jpeg": {}}}},
)
async def get_thumbnail(collection: NameInPath, item: ItemId, services: CurrentServices) -> Response:
    """A small version of the picture, upright."""
    found = await run_in_threadpool(services.library.get_item, collection, item)

    def small() -> Any:
        library = services.library
        known = found.sha256 and library.pictures.thumbnail(found.sha256)
        if known:
            return known
        data = library.read_picture(found)
        picture = decode(data, ImageLimits.of(services.settings), min_side=THUMBNAIL_SIDE)
        return library.pictures.thumbnail(str(found.sha256), picture)

    return FileResponse(await run_in_threadpool(small), media_type="image/jpeg", headers=_forever(found))


def item_info(collection: str, item: Item) -> ItemInfo:
    """An item as the API shows it."""
    image, thumbnail = picture_urls(collection, item)
    return ItemInfo(
        id=item.id,
        collection=collection,
        label=item.label,
        metadata=item.details,
        sha256=item.sha256,
        media_type=item.media_type,
        width=item.width,
        height=item.height,
        model=item.model,
        image_url=image,
        thumbnail_url=thumbnail,
        created=item.created,
    )


def _forever(item: Item) -> dict[str, str]:
    # A picture never changes under its item, and item numbers are never given twice.
    return {"Cache-Control": "private, max-age=31536000, immutable", "ETag": f'"{item.sha256}"'}


def _parse_metadata(text: str) -> dict[str, Any]:
    _check_size(text.encode("utf-8", "surrogatepass"))
    try:
        details = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError) as error:
        raise errors.RequestInvalid(f"metadata is not JSON ({error}); send an object, such as {{}}") from error
    if not isinstance(details, dict):
        raise errors.RequestInvalid("metadata must be a JSON object, such as {}")
    return details


def _check_size(metadata: bytes) -> None:
    if len(metadata) > MAX_METADATA_BYTES:
        raise errors.RequestInvalid(
            f"metadata has {len(metadata):,} bytes; at most {MAX_METADATA_BYTES:,} are accepted"
        )
