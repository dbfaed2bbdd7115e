"""Which models answer, and switching to another version of one."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from starlette.concurrency import run_in_threadpool

from serving import errors
from serving.answering import EMBEDDER
from serving.manifest import NAME_PATTERN
from serving.problems import describe
from serving.schemas import ActivateRequest, Activation, ModelInfo, ModelList
from serving.services import CurrentServices, Services

router = APIRouter(prefix="/v1/models", tags=["models"])

ModelName = Annotated[str, Path(pattern=rf"^{NAME_PATTERN.pattern}$", description="the model's name")]


@router.get("")
async def list_models(services: CurrentServices) -> ModelList:
    """Every model in use: version, sha256, metrics, what runs it, and which other versions there are."""
    return await run_in_threadpool(_list, services)


@router.post(
    "/{name}/activate",
    responses=describe(
        errors.ModelMissing, errors.VersionMissing, errors.VersionRefused, errors.RequestInvalid, errors.DiskFull
    )
    | {202: {"model": Activation, "description": "the new embedder looks at all pictures first"}},
)
async def activate(name: ModelName, wish: ActivateRequest, services: CurrentServices, response: Response) -> Activation:
    """Switch to another version, after its checks; no request fails meanwhile. A version that fails them is refused."""
    activation = await run_in_threadpool(_activate, services, name, wish)
    response.status_code = 202 if activation.state == "preparing" else 200
    return activation


def _list(services: Services) -> ModelList:
    answering = services.answering
    return ModelList(
        models=[
            ModelInfo(
                runtime=answering.networks[name].place,
                versions=services.switchboard.listed_versions(name),
                **model.manifest.model_dump(),
            )
            for name, model in answering.models.items()
        ]
    )


def _activate(services: Services, name: str, wish: ActivateRequest) -> Activation:
    switchboard = services.switchboard
    switchboard.versions(name)  # says so, if there is no such model
    live = switchboard.current.models.get(name)
    previous = live.manifest.version if live else None
    done = Activation(name=name, version=wish.version, previous=previous, state="active")
    if wish.version == previous:
        return done
    candidate = switchboard.examine(name, wish.version, force=wish.force)
    if name == EMBEDDER:
        job = services.jobs.activate(candidate, force=wish.force)
        return done.model_copy(update={"state": "preparing", "job": job.id})
    switchboard.put_to_use(candidate)
    return done
