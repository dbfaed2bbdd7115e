"""Signing in on the page: a key becomes a cookie."""

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from serving import errors
from serving.access import COOKIE, Caller, unknown_key
from serving.problems import describe
from serving.roles import Role
from serving.services import CurrentServices
from serving.session_schemas import SessionInfo, SignedIn, SignIn

router = APIRouter(prefix="/v1/session", tags=["session"], responses=describe(errors.HostRefused))

DAYS_SIGNED_IN = 30  # or until the key expires


@router.get("")
async def get_session(request: Request, services: CurrentServices) -> SessionInfo:
    """Who is asking, and whether a key is needed; strangers may ask, too."""
    caller: Caller | None = request.scope["caller"]
    keys = await run_in_threadpool(services.keys.needed)
    if caller is None:
        return SessionInfo(name=None, role=None, keys=keys)
    return SessionInfo(name=caller.name or None, role=caller.role, keys=keys)


@router.post("", responses=describe(errors.KeyMissing, errors.RequestInvalid))
async def sign_in(wanted: SignIn, request: Request, response: Response, services: CurrentServices) -> SignedIn:
    """Sign in with a key: it is kept in a cookie that scripts cannot read and other sites cannot use."""
    secret = wanted.key.strip()
    key = await run_in_threadpool(services.keys.find, secret)
    if key is None:
        raise unknown_key()
    response.set_cookie(
        COOKIE,
        secret,
        max_age=DAYS_SIGNED_IN * 86_400,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return SignedIn(name=key.name, role=Role(key.role))


@router.delete("", status_code=204)
async def sign_out(response: Response) -> None:
    """Forget the key."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
