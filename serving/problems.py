"""Every failure of a request, ours or the framework's, as `application/problem+json`."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from serving.errors import (
    BodyMalformed,
    BodyTooLarge,
    MethodNotAllowed,
    NotFound,
    RequestError,
    RequestInvalid,
)
from serving.schemas import Problem

MEDIA_TYPE = "application/problem+json"


def problem_response(error: RequestError, request_id: str) -> Response:
    """The answer for one error."""
    body = orjson.dumps(error.problem(request_id))
    return Response(body, status_code=error.status, headers=error.headers, media_type=MEDIA_TYPE)


def install_error_handlers(app: FastAPI) -> None:
    """Turn every exception that a route or the framework raises into a problem document."""

    async def answer(request: Request, error: Exception) -> Response:
        translated = error if isinstance(error, RequestError) else _translate(error)
        return problem_response(translated, request.scope["request_id"])

    handler = cast(Callable[[Request, Exception], Awaitable[Response]], answer)
    for kind in (RequestError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, handler)


def _translate(error: Exception) -> RequestError:
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    assert isinstance(error, HTTPException)
    headers = error.headers or {}
    match error.status_code:
        case 404:
            return NotFound("there is nothing at this address; /docs lists all addresses")
        case 405:
            return MethodNotAllowed(f"use {headers.get('Allow', 'another method')} here", headers=headers)
        case 413:
            return BodyTooLarge(str(error.detail))
        case _:
            return BodyMalformed(f"{error.detail}; send multipart/form-data as described at /docs")


def _invalid(error: RequestValidationError) -> RequestInvalid:
    fields = [
        {"field": ".".join(map(str, item["loc"][1:])) or str(item["loc"][0]), "message": item["msg"]}
        for item in error.errors()
    ]
    sentence = "; ".join(f"{field['field']}: {field['message']}" for field in fields)
    return RequestInvalid(f"{sentence}; /docs describes every field", errors=fields)


def describe(*errors: type[RequestError]) -> dict[int | str, dict[str, Any]]:
    """OpenAPI's description of the errors a route may answer with, one entry a status."""
    responses: dict[int | str, dict[str, Any]] = {}
    for error in errors:
        entry = responses.setdefault(
            error.status,
            {"model": Problem, "description": "", "content": {MEDIA_TYPE: {"examples": {}}}},
        )
        entry["description"] = "; ".join(filter(None, [entry["description"], error.title]))
        entry["content"][MEDIA_TYPE]["examples"][error.kind] = {
            "summary": error.title,
            "value": error(error.title).problem("3f0c1a9e5b7d4c21"),
        }
    return responses
