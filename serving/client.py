"""A typed client of the API, for apps, the page, the command and the tests.

>>> with Client("http://127.0.0.1:8000") as client:          # doctest: +SKIP
...     vectors = client.embed([Path("leaf.jpg")]).embeddings
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel

from serving.schemas import EmbedResponse, Health, ModelList, Problem

Answer = TypeVar("Answer", bound=BaseModel)
Picture = Path | bytes


class ApiError(Exception):
    """The service refused a request; `problem` says why."""

    def __init__(self, problem: Problem, retry_after: float | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.retry_after = retry_after


class ServiceUnreachable(Exception):
    """Nothing answers at the service's address."""


class Client:
    """Calls a running service. Pictures are paths or the bytes of an image file."""

    def __init__(self, base_url: str, *, timeout: float = 60.0, transport: httpx.BaseTransport | None = None) -> None:
        # trust_env=False: a proxy set for the internet must not stand between us and our own service.
        self._http = httpx.Client(base_url=base_url, timeout=timeout, transport=transport, trust_env=False)

    def __enter__(self) -> Self:
        """Use as a context manager to close the connections at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def ready(self) -> Health:
        """Whether the service is ready to work."""
        return self._call(Health, "GET", "/health/ready")

    def models(self) -> ModelList:
        """The models in use."""
        return self._call(ModelList, "GET", "/v1/models")

    def embed(self, images: Sequence[Picture]) -> EmbedResponse:
        """One unit vector for each picture."""
        return self._call(EmbedResponse, "POST", "/v1/embed", files=[_part("images", image) for image in images])

    def _call(self, answer: type[Answer], method: str, path: str, **request: Any) -> Answer:
        try:
            response = self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise ServiceUnreachable(
                f"no answer from {self._http.base_url} ({error or type(error).__name__}); is Readleaf running?"
            ) from error
        if response.is_success:
            return answer.model_validate_json(response.content)
        raise _error(response)


def _part(field: str, image: Picture) -> tuple[str, tuple[str, bytes]]:
    if isinstance(image, bytes):
        return field, ("image", image)
    return field, (image.name, image.read_bytes())


def _error(response: httpx.Response) -> ApiError:
    if response.headers.get("content-type", "").startswith("application/problem+json"):
        problem = Problem.model_validate_json(response.content)
    else:
        problem = Problem(
            type="about:blank",
            title=response.reason_phrase,
            status=response.status_code,
            detail=f"{response.url} answered {response.status_code} {response.reason_phrase}",
            request_id=response.headers.get("x-request-id", ""),
        )
    retry_after = response.headers.get("retry-after", "")
    return ApiError(problem, float(retry_after) if retry_after.isdigit() else None)
