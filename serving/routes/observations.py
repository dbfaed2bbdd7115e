"""Observations: sent in, looked at, voted on."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from serving import errors
from serving.access import CurrentCaller, CurrentReviewer
from serving.images import ImageLimits, decode
from serving.images import describe as describe_picture
from serving.library import NewPicture
from serving.pipelines.priors import parse_prior
from serving.pipelines.upload import Upload
from serving.problems import describe
from serving.review.observations import Circumstances, NewImage, NewObservation
from serving.review.votes import NewVote
from serving.review_answers import kept_identification, observation_info
from serving.review_schemas import LARGEST_ID, ObservationInfo, ObservationPage, ObservationStatus, VoteRequest
from serving.routes.identify import Pictures, Prior
from serving.schemas import CollectionName, Label
from serving.services import CurrentServices, CurrentTimings, Services, with_current_vectors
from serving.store.pictures import THUMBNAIL_SIDE
from serving.store.review_tables import ObservationImage

router = APIRouter(prefix="/v1/observations", tags=["observations"])

DATE = r"^\d{4}(-\d{2}(-\d{2}(T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})?)?)?)?$"
ORGANS = ("flower", "leaf", "fruit", "bark", "habit", "other")
ObservationId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="the observation's number")]
NAMED = errors.RequestInvalid, errors.ReviewerUnnamed
FOREVER = "private, max-age=31536000, immutable"  # a picture never changes under its number


@router.post(
    "",
    status_code=201,
    responses=describe(errors.CollectionMissing, errors.PriorInvalid, errors.DiskFull, *errors.BAD_PICTURE),
)
async def submit_observation(
    collection: Annotated[CollectionName, Form(description="where it is compared, and kept once it is verified")],
    images: Pictures,
    services: CurrentServices,
    timings: CurrentTimings,
    caller: CurrentCaller,
    organs: Annotated[
        str | None, Form(max_length=200, description=f"one for each picture, by commas: {', '.join(ORGANS)}")
    ] = None,
    observed: Annotated[
        str | None, Form(pattern=DATE, description="when, as exact as it is known", examples=["2026-05-14"])
    ] = None,
    latitude: Annotated[float | None, Form(ge=-90, le=90, allow_inf_nan=False)] = None,
    longitude: Annotated[float | None, Form(ge=-180, le=180, allow_inf_nan=False)] = None,
    place: Annotated[Label | None, Form(description="where, in words")] = None,
    observer: Annotated[Label | None, Form(description="who saw it")] = None,
    notes: Annotated[str, Form(max_length=5000)] = "",
    prior: Prior = None,
) -> ObservationInfo:
    """Send in an organism: it is identified, and waits for an expert's word."""
    summary = await run_in_threadpool(services.library.get_collection, collection)
    named = _organs(organs, len(images))
    weights = parse_prior(prior, list(summary.labels) or [""]) if prior is not None else None
    uploads = [Upload(f"images[{number}]", await image.read()) for number, image in enumerate(images)]
    where = Circumstances(observed, latitude, longitude, place or "", observer or "", notes)

    async def submit(services: Services) -> ObservationInfo:
        async with services.admission.enter(timings):
            identifier = services.answering.identifier
            looked = await identifier(collection, uploads, summary.labels, timings, prior=weights)
        pictures = [
            NewImage(NewPicture(upload.data, *describe_picture(upload.data)), vector, organ)
            for upload, vector, organ in zip(uploads, looked.vectors, named, strict=True)
        ]

        def keep() -> ObservationInfo:
            labels = [each.label for each in looked.found.suggestions]
            with services.library.held():
                services.library.check_model(looked.embedder.sha256)
                taxa = services.desk.taxa_of_labels(labels, caller.name)
                new = NewObservation(pictures, kept_identification(looked, taxa), where)
                return observation_info(services.desk.submit(collection, new, caller.name), caller.name)

        with timings.measure("store"):
            return await run_in_threadpool(keep)

    return await with_current_vectors(services, submit)


@router.get("", responses=describe(errors.CollectionMissing, errors.RequestInvalid))
async def list_observations(
    services: CurrentServices,
    caller: CurrentCaller,
    collection: Annotated[CollectionName | None, Query()] = None,
    status: Annotated[ObservationStatus | None, Query()] = None,
    cursor: Annotated[int, Query(ge=0, le=LARGEST_ID, description="`next_cursor` of the page before")] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> ObservationPage:
    """Observations in the order they came, a page at a time."""

    def find() -> ObservationPage:
        found = services.desk.find(collection=collection, status=status, after=cursor, limit=limit + 1)
        page = [observation_info(seen, caller.name) for seen in found[:limit]]
        return ObservationPage(observations=page, next_cursor=page[-1].id if len(found) > limit else None)

    return await run_in_threadpool(find)


@router.get("/{observation}", responses=describe(errors.ObservationMissing, errors.RequestInvalid))
async def get_observation(
    observation: ObservationId, services: CurrentServices, caller: CurrentCaller
) -> ObservationInfo:
    """One observation with its identification, votes and history."""
    seen = await run_in_threadpool(services.desk.get, observation)
    return observation_info(seen, caller.name)


@router.post(
    "/{observation}/votes",
    responses=describe(errors.ObservationMissing, errors.TaxonMissing, errors.LeaseMissing, *NAMED, errors.DiskFull),
)
async def vote(
    observation: ObservationId, said: VoteRequest, services: CurrentServices, reviewer: CurrentReviewer
) -> ObservationInfo:
    """Say what it is, with a lease; once it is decided, a search finds its pictures from the moment of the answer."""
    new = NewVote(said.kind, said.taxon_id, said.name or "", said.rank, said.parent, said.comment)
    seen = await run_in_threadpool(services.desk.vote, observation, new, reviewer)
    return observation_info(seen, reviewer)


@router.post(
    "/{observation}/undo",
    responses=describe(errors.ObservationMissing, errors.VoteMissing, *NAMED, errors.DiskFull),
)
async def undo(observation: ObservationId, services: CurrentServices, reviewer: CurrentReviewer) -> ObservationInfo:
    """Take one's vote back, and what it had put into the collection."""
    return observation_info(await run_in_threadpool(services.desk.undo, observation, reviewer), reviewer)


@router.put(
    "/{observation}/lease",
    responses=describe(errors.ObservationMissing, errors.LeaseMissing, *NAMED),
)
async def renew_lease(
    observation: ObservationId, services: CurrentServices, reviewer: CurrentReviewer
) -> ObservationInfo:
    """Hold it for another ten minutes."""
    return observation_info(await run_in_threadpool(services.desk.renew, observation, reviewer), reviewer)


@router.delete(
    "/{observation}/lease",
    status_code=204,
    responses=describe(errors.ObservationMissing, errors.LeaseMissing, *NAMED),
)
async def release_lease(observation: ObservationId, services: CurrentServices, reviewer: CurrentReviewer) -> None:
    """Give it back without a vote."""
    await run_in_threadpool(services.desk.release, observation, reviewer)


@router.get(
    "/{observation}/images/{place}",
    response_class=Response,
    responses=describe(errors.ObservationMissing, errors.PictureMissing, errors.RequestInvalid)
    | {200: {"description": "the picture as it was sent", "content": {"image/*": {}}}},
)
async def get_image(
    observation: ObservationId, place: Annotated[int, Path(ge=1, le=100)], services: CurrentServices
) -> Response:
    """A picture, byte for byte as it was sent; the first is 1."""

    def read() -> Response:
        image = _image(services, observation, place)
        data = services.library.pictures.read(image.sha256)
        return Response(data, media_type=image.media_type, headers={"Cache-Control": FOREVER})

    return await run_in_threadpool(read)


@router.get(
    "/{observation}/images/{place}/thumbnail",
    response_class=Response,
    responses=describe(errors.ObservationMissing, errors.PictureMissing, errors.RequestInvalid)
    | {200: {"description": f"a JPEG of at most {THUMBNAIL_SIDE} pixels a side", "content": {"image/jpeg": {}}}},
)
async def get_thumbnail(
    observation: ObservationId, place: Annotated[int, Path(ge=1, le=100)], services: CurrentServices
) -> Response:
    """A small version of a picture, upright."""

    def small() -> Any:
        image, pictures = _image(services, observation, place), services.library.pictures
        known = pictures.thumbnail(image.sha256)
        if known is None:
            limits = ImageLimits.of(services.settings)
            picture = decode(pictures.read(image.sha256), limits, min_side=THUMBNAIL_SIDE)
            known = pictures.thumbnail(image.sha256, picture)
        return known

    path = await run_in_threadpool(small)
    return FileResponse(path, media_type="image/jpeg", headers={"Cache-Control": FOREVER})


def _image(services: CurrentServices, observation: int, place: int) -> ObservationImage:
    images = services.desk.get(observation).images
    if place > len(images):
        raise errors.PictureMissing(f"observation {observation} has {len(images)} pictures; there is no {place}")
    return images[place - 1]


def _organs(text: str | None, count: int) -> list[str | None]:
    """An organ for each picture, or none for all."""
    if text is None or not text.strip():
        return [None] * count
    named = [part.strip() for part in text.split(",")]
    if len(named) != count or any(part not in ORGANS for part in named):
        raise errors.RequestInvalid(f"organs must name one of {', '.join(ORGANS)} for each of the {count} pictures")
    return list(named)
