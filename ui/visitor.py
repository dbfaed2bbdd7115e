"""A client that asks in the name of whoever sits before the page."""

from typing import Any

import httpx
from gradio.context import LocalContext

from serving.client import Client

COOKIE = "readleaf_key"  # that signing in sets


class VisitorClient(Client):
    """Passes the key on that the visitor's browser sent with what is being answered; where no key is needed, none."""

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        visit = LocalContext.request.get(None)
        key = visit.cookies.get(COOKIE) if visit is not None else None
        if key:
            request["headers"] = {**request.get("headers", {}), "Authorization": f"Bearer {key}"}
        return super()._send(method, path, **request)
