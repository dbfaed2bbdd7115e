"""Which models answer."""

from fastapi import APIRouter

from serving.schemas import ModelInfo, ModelList
from serving.services import CurrentServices

router = APIRouter(prefix="/v1", tags=["models"])


@router.get("/models")
async def list_models(services: CurrentServices) -> ModelList:
    """Every model in use: version, sha256, metrics, and what runs it."""
    return ModelList(
        models=[
            ModelInfo(runtime=services.runtime.describe(name), **model.manifest.model_dump())
            for name, model in services.models.items()
        ]
    )
