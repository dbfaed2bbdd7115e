"""Addresses under /v1 and /health that do not exist.

The page is mounted at `/` and would answer for anything that no route claims, a wrong method included.
"""

from fastapi import APIRouter, Request
from starlette.routing import compile_path

from serving.errors import MethodNotAllowed, NotFound

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

router = APIRouter(include_in_schema=False)


@router.api_route("/v1/{path:path}", methods=METHODS)
@router.api_route("/health/{path:path}", methods=METHODS)
@router.api_route("/metrics", methods=METHODS)
async def nothing_here(request: Request) -> None:
    """Say whether the address or the method is wrong."""
    paths = request.app.openapi()["paths"]
    allowed = sorted(
        method.upper()
        for template, operations in paths.items()
        if compile_path(template)[0].match(request.url.path)
        for method in operations
    )
    if allowed:
        use = ", ".join(allowed)
        raise MethodNotAllowed(f"{request.method} is not possible here; use {use}", headers={"Allow": use})
    raise NotFound(f"there is nothing at {request.url.path}; /docs lists all addresses")
