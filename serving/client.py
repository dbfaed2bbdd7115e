"""A typed client of the API, for apps, the page, the command and the tests.

>>> with Client("http://127.0.0.1:8000") as client:          # doctest: +SKIP
...     vectors = client.embed([Path("leaf.jpg")]).embeddings
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from serving.review_schemas import (
    FiguresInfo,
    IdentifyResponse,
    NextResponse,
    ObservationInfo,
    ObservationPage,
    PolicyInfo,
    TaxaImported,
    TaxonInfo,
    TaxonList,
)
from serving.schemas import (
    Activation,
    ClassifyResponse,
    CollectionInfo,
    CollectionList,
    EmbedResponse,
    Health,
    ItemInfo,
    ItemPage,
    JobInfo,
    ModelList,
    Problem,
    ReadResponse,
    RecognizeResponse,
    SearchResponse,
)
from serving.session_schemas import SessionInfo

Answer = TypeVar("Answer", bound=BaseModel)
Picture = Path | bytes
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"}  # of files that may be pictures


class ApiError(Exception):
    """The service refused a request; `problem` says why."""

    def __init__(self, problem: Problem, retry_after: float | None = None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.retry_after = retry_after


class ServiceUnreachable(Exception):
    """Nothing answers at the service's address."""


class Client:
    """Calls a running service. Pictures are paths or the bytes of an image file.

    `key` is an API key; `reviewer` is who votes, where the service needs no key.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        reviewer: str | None = None,
        *,
        timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        key = (key or "").strip()  # as it comes from a file or a pipe
        headers = {b"Authorization": f"Bearer {key}".encode()} if key else {}
        if reviewer:
            headers[b"X-Reviewer"] = quote(reviewer, safe="").encode()
        # trust_env=False: a proxy set for the internet must not stand between us and our own service.
        self._http = httpx.Client(
            base_url=base_url,
            headers=headers,
            timeout=timeout,
            transport=transport,
            trust_env=False,
        )

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

    def session(self) -> SessionInfo:
        """Who the service takes us for, and whether it needs a key."""
        return self._call(SessionInfo, "GET", "/v1/session")

    def models(self) -> ModelList:
        """The models in use."""
        return self._call(ModelList, "GET", "/v1/models")

    def activate(self, name: str, version: int, *, force: bool = False) -> Activation:
        """Switch to another version of a model; an embedder's switch is a job."""
        return self._call(Activation, "POST", f"/v1/models/{name}/activate", json={"version": version, "force": force})

    def embed(self, images: Sequence[Picture]) -> EmbedResponse:
        """One unit vector for each picture."""
        return self._call(EmbedResponse, "POST", "/v1/embed", files=[_part("images", image) for image in images])

    def read(self, image: Picture, min_confidence: float | None = None) -> ReadResponse:
        """All words of a picture, in reading order; with a low `min_confidence` doubtful ones, too."""
        form = {} if min_confidence is None else {"min_confidence": str(min_confidence)}
        return self._call(ReadResponse, "POST", "/v1/read", files=[_part("image", image)], data=form)

    def recognize(self, crops: Sequence[Picture], *, details: bool = False) -> RecognizeResponse:
        """The word on each crop; `details` adds how sure each character is, and what else it may be."""
        files = [_part("images", crop) for crop in crops]
        form = {"details": "true"} if details else {}
        return self._call(RecognizeResponse, "POST", "/v1/recognize", files=files, data=form)

    def classify(
        self,
        image: Picture,
        *,
        model: str | None = None,
        prior: Mapping[str, float] | None = None,
        top: int | None = None,
        explain: bool = False,
    ) -> ClassifyResponse:
        """What a picture shows; `prior` says how many times as often as in training labels are met."""
        wishes = {"model": model, "prior": json.dumps(prior) if prior else None, "top": top, "explain": explain or None}
        form = {name: str(value) for name, value in wishes.items() if value is not None}
        return self._call(ClassifyResponse, "POST", "/v1/classify", files=[_part("image", image)], data=form)

    def collections(self) -> CollectionList:
        """All collections."""
        return self._call(CollectionList, "GET", "/v1/collections")

    def collection(self, name: str) -> CollectionInfo:
        """One collection."""
        return self._call(CollectionInfo, "GET", _collection(name))

    def create_collection(self, name: str, description: str = "") -> CollectionInfo:
        """Make an empty collection."""
        body = {"name": name, "description": description}
        return self._call(CollectionInfo, "POST", "/v1/collections", json=body)

    def delete_collection(self, name: str) -> None:
        """Delete a collection with all its items."""
        self._send("DELETE", _collection(name))

    def add_item(
        self,
        collection: str,
        image: Picture,
        label: str | None = None,
        metadata: dict[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> ItemInfo:
        """Add a picture to a collection."""
        form = {"metadata": json.dumps(metadata or {})} | ({} if label is None else {"label": label})
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        path = f"{_collection(collection)}/items"
        return self._call(ItemInfo, "POST", path, files=[_part("image", image)], data=form, headers=headers)

    def items(self, collection: str, label: str | None = None, cursor: int = 0, limit: int = 50) -> ItemPage:
        """A page of items, in the order they came."""
        wanted: dict[str, str | int] = {"cursor": cursor, "limit": limit} | ({} if label is None else {"label": label})
        return self._call(ItemPage, "GET", f"{_collection(collection)}/items", params=wanted)

    def relabel_item(self, collection: str, item: int, label: str | None) -> ItemInfo:
        """Give an item another label, or none."""
        return self._call(ItemInfo, "PATCH", f"{_collection(collection)}/items/{item}", json={"label": label})

    def delete_item(self, collection: str, item: int) -> None:
        """Delete an item."""
        self._send("DELETE", f"{_collection(collection)}/items/{item}")

    def search(
        self, collection: str, image: Picture, k: int = 10, label: str | None = None, region: str | None = None
    ) -> SearchResponse:
        """What looks like a picture, or like its `region` (left,top,width,height in pixels)."""
        wishes = {"label": label, "region": region}
        form = {"k": str(k)} | {name: value for name, value in wishes.items() if value is not None}
        path = f"{_collection(collection)}/search"
        return self._call(SearchResponse, "POST", path, files=[_part("image", image)], data=form)

    def identify(
        self, collection: str, images: Sequence[Picture], prior: Mapping[str, float] | None = None
    ) -> IdentifyResponse:
        """What one organism in 1 to 5 pictures probably is."""
        form = {"prior": json.dumps(prior)} if prior else {}
        files = [_part("images", image) for image in images]
        return self._call(IdentifyResponse, "POST", f"{_collection(collection)}/identify", files=files, data=form)

    def submit_observation(
        self, collection: str, images: Sequence[Picture], **circumstances: str | float | None
    ) -> ObservationInfo:
        """Send in an organism: `observed`, `latitude`, `longitude`, `place`, `observer`, `notes`, `organs`, `prior`."""
        form = {"collection": collection}
        form |= {name: str(value) for name, value in circumstances.items() if value is not None}
        files = [_part("images", image) for image in images]
        return self._call(ObservationInfo, "POST", "/v1/observations", files=files, data=form)

    def observation(self, number: int) -> ObservationInfo:
        """One observation."""
        return self._call(ObservationInfo, "GET", f"/v1/observations/{number}")

    def observations(
        self, collection: str | None = None, status: str | None = None, cursor: int = 0, limit: int = 20
    ) -> ObservationPage:
        """A page of observations, in the order they came."""
        wishes = {"collection": collection, "status": status, "cursor": cursor, "limit": limit}
        wanted = {name: value for name, value in wishes.items() if value is not None}
        return self._call(ObservationPage, "GET", "/v1/observations", params=wanted)

    def next_observation(self, collection: str, skip: Sequence[int] = ()) -> NextResponse | None:
        """The next observation to review, held for the caller; None if nothing waits."""
        body = {"collection": collection, "skip": list(skip)}
        response = self._send("POST", "/v1/review/next", json=body)
        return None if response.status_code == 204 else NextResponse.model_validate_json(response.content)

    def vote(self, number: int, kind: str, **said: Any) -> ObservationInfo:
        """Say what an observation is: `taxon_id`, or `name` and `rank`, and a `comment`."""
        return self._call(ObservationInfo, "POST", f"/v1/observations/{number}/votes", json={"kind": kind, **said})

    def undo(self, number: int) -> ObservationInfo:
        """Take one's vote back."""
        return self._call(ObservationInfo, "POST", f"/v1/observations/{number}/undo")

    def release(self, number: int) -> None:
        """Give an observation back without a vote."""
        self._send("DELETE", f"/v1/observations/{number}/lease")

    def policy(self, collection: str) -> PolicyInfo:
        """How a collection's observations are decided."""
        return self._call(PolicyInfo, "GET", f"{_collection(collection)}/policy")

    def set_policy(self, collection: str, policy: PolicyInfo) -> PolicyInfo:
        """Change it."""
        return self._call(PolicyInfo, "PUT", f"{_collection(collection)}/policy", json=policy.model_dump())

    def taxa(self, name: str = "", cursor: int = 0, limit: int = 50) -> TaxonList:
        """Taxa with `name` in one of their names."""
        wanted: dict[str, str | int] = {"name": name, "cursor": cursor, "limit": limit}
        return self._call(TaxonList, "GET", "/v1/taxa", params=wanted)

    def make_taxon(self, name: str, **known: Any) -> TaxonInfo:
        """A new taxon: `rank`, `parent`, `synonyms`, `common_names`, `gbif_key`."""
        return self._call(TaxonInfo, "POST", "/v1/taxa", json={"name": name, **known})

    def import_taxa(self, file: Path) -> TaxaImported:
        """Take a taxonomy in: CSV, TSV or a Darwin Core archive."""
        return self._call(TaxaImported, "POST", "/v1/taxa/import", files={"file": (file.name, file.read_bytes())})

    def figures(self, collection: str) -> FiguresInfo:
        """How a collection's review goes."""
        return self._call(FiguresInfo, "GET", "/v1/review/figures", params={"collection": collection})

    def change_taxon(self, number: int, change: str, **wanted: Any) -> httpx.Response:
        """`rename` (name), `place` (parent), `merge` (into) or `split` (parts)."""
        return self._send("POST", f"/v1/taxa/{number}/{change}", json=wanted)

    def import_archive(self, collection: str, archive: Path, label: str | None = None) -> JobInfo:
        """Add the pictures of a zip file to a collection, in the background; ask `job` how far it is."""
        form = {"collection": collection} | ({} if label is None else {"label": label})
        with archive.open("rb") as stream:
            return self._call(JobInfo, "POST", "/v1/jobs", files={"archive": (archive.name, stream)}, data=form)

    def rebuild(self, collection: str) -> JobInfo:
        """Make the vectors anew that another model made, in the background."""
        return self._call(JobInfo, "POST", "/v1/jobs", data={"kind": "rebuild", "collection": collection})

    def job(self, number: str) -> JobInfo:
        """How far a job is."""
        return self._call(JobInfo, "GET", f"/v1/jobs/{number}")

    def cancel_job(self, number: str) -> JobInfo:
        """Stop a job."""
        return self._call(JobInfo, "DELETE", f"/v1/jobs/{number}")

    def fetch(self, path: str) -> bytes:
        """The bytes at an address that an answer named, such as `thumbnail_url`."""
        return self._send("GET", path).content

    def _call(self, answer: type[Answer], method: str, path: str, **request: Any) -> Answer:
        return answer.model_validate_json(self._send(method, path, **request).content)

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise ServiceUnreachable(
                f"no answer from {self._http.base_url} ({error or type(error).__name__}); is Readleaf running?"
            ) from error
        if response.is_success:
            return response
        raise _error(response)


def _collection(name: str) -> str:
    return f"/v1/collections/{quote(name, safe='')}"


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
