"""The queue of an expert, and how a collection's observations are decided."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from serving import errors
from serving.access import CurrentReviewer
from serving.problems import describe
from serving.review_answers import observation_info
from serving.review_schemas import FiguresInfo, NextRequest, NextResponse, PolicyInfo
from serving.routes.collections import NameInPath
from serving.schemas import CollectionName
from serving.services import CurrentServices

router = APIRouter(prefix="/v1", tags=["review"])


@router.post(
    "/review/next",
    response_model=NextResponse,
    responses=describe(errors.CollectionMissing, errors.RequestInvalid, errors.ReviewerUnnamed, errors.DiskFull)
    | {204: {"description": "nothing waits for you"}},
)
async def next_observation(
    wanted: NextRequest, services: CurrentServices, reviewer: CurrentReviewer
) -> NextResponse | Response:
    """The most useful observation that nobody else looks at, held for you for ten minutes."""
    seen, waiting = await run_in_threadpool(services.desk.next, wanted.collection, reviewer, wanted.skip)
    if seen is None:
        return Response(status_code=204)
    return NextResponse(observation=observation_info(seen, reviewer), waiting=waiting)


@router.get("/review/figures", responses=describe(errors.CollectionMissing, errors.RequestInvalid))
async def get_figures(
    collection: Annotated[CollectionName, Query(description="the collection's name")], services: CurrentServices
) -> FiguresInfo:
    """How the review goes: the queue, the pace, how far people agree, how good the model is, what it confuses."""
    found = await run_in_threadpool(services.desk.figures, collection)
    return FiguresInfo.model_validate(asdict(found))


@router.get("/collections/{collection}/policy", responses=describe(errors.CollectionMissing, errors.RequestInvalid))
async def get_policy(collection: NameInPath, services: CurrentServices) -> PolicyInfo:
    """How observations are decided here."""
    found = await run_in_threadpool(services.desk.get_policy, collection)
    return PolicyInfo(rule=found.rule, blind=found.blind, random_share=found.random_share)


@router.put(
    "/collections/{collection}/policy",
    responses=describe(errors.CollectionMissing, errors.RequestInvalid, errors.DiskFull),
)
async def set_policy(collection: NameInPath, wanted: PolicyInfo, services: CurrentServices) -> PolicyInfo:
    """Change how observations are decided; those that wait are counted anew."""

    def change() -> PolicyInfo:
        services.desk.set_policy(collection, rule=wanted.rule, blind=wanted.blind, random_share=wanted.random_share)
        return wanted

    return await run_in_threadpool(change)
