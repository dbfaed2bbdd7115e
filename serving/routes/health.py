"""Is it alive, is it ready, and how is it doing."""

from fastapi import APIRouter, Request, Response

from serving import errors
from serving.problems import describe
from serving.schemas import Health

router = APIRouter(tags=["health"])


@router.get("/health/live", response_model_exclude_none=True)
async def live() -> Health:
    """The process answers."""
    return Health(status="live")


@router.get(
    "/health/ready",
    response_model_exclude_none=True,
    responses={503: {"model": Health, "description": "Models are loading, cannot be reached, or the server stops"}},
)
async def ready(request: Request, response: Response) -> Health:
    """Models are loaded and warm, and what runs them answers."""
    services = getattr(request.app.state, "services", None)
    reason = (
        "models are still loading, or the server is stopping" if services is None else services.switchboard.trouble()
    )
    if reason is not None:
        response.status_code = 503
        return Health(status="not ready", reason=reason)
    return Health(status="ready")


@router.get(
    "/metrics",
    response_class=Response,
    responses=describe(errors.KeyMissing, errors.HostRefused)
    | {200: {"content": {"text/plain": {}}, "description": "Prometheus text"}},
)
def metrics(request: Request) -> Response:  # not in the event loop: Triton is asked for its own
    """Counters and timings for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
