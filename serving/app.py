"""`create_app(settings)`: the whole service as one ASGI application, without module-level state."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import Depends, FastAPI
from fastapi_swagger import patch_fastapi

from serving.access import REFUSALS, AccessMiddleware, check_role, describe_keys
from serving.metrics import Metrics
from serving.middleware import RequestMiddleware
from serving.problems import install_error_handlers
from serving.routes import (
    classify,
    collections,
    embed,
    exports,
    fallback,
    health,
    identify,
    items,
    jobs,
    models,
    observations,
    read,
    recognize,
    review,
    search,
    session,
    taxa,
)
from serving.services import open_services
from serving.settings import Settings

DESCRIPTION = """
Pictures in, answers out. Images are sent as multipart files (JPEG, PNG, WebP, BMP, TIFF); errors are
`application/problem+json` with a stable `type`. Every answer carries `X-Request-ID` and `Server-Timing`.
Once an API key was made, every call but `/health` needs one: `Authorization: Bearer KEY`.
"""


def create_app(settings: Settings) -> FastAPI:
    """Build the app; models are loaded when its lifespan begins."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with open_services(settings, metrics) as services:
            app.state.services = services
            yield
            app.state.services = None

    app = FastAPI(
        title="Readleaf",
        version=version("readleaf"),
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        lifespan=lifespan,
    )
    app.state.metrics = metrics
    app.add_middleware(AccessMiddleware)
    app.add_middleware(RequestMiddleware, metrics=metrics, max_body_bytes=settings.max_body_bytes)
    install_error_handlers(app)
    patch_fastapi(app, redirect_from_root_to_docs=not settings.ui)  # /docs from files of ours, not a CDN's
    describe_keys(app)
    for part in (health, session):
        app.include_router(part.router)
    asked = (models, embed, read, recognize, classify, collections, items, search, identify, jobs)
    for part in (*asked, observations, review, taxa, exports):
        app.include_router(part.router, dependencies=[Depends(check_role)], responses=REFUSALS)
    app.include_router(fallback.router)
    return app
