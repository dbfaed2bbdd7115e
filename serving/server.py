"""Runs the app on one port: checks the address first, then loads, then listens."""

import asyncio
import ipaddress
import signal
import socket
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import structlog
import uvicorn
from fastapi import FastAPI

from serving.app import create_app
from serving.errors import AddressRefused, PortInUse
from serving.keys import any_keys
from serving.logs import configure_logs
from serving.settings import Settings
from serving.store.data_folder import hold_data_folder
from serving.store.database import FILE_NAME, open_database, prepare_data_folder

log = structlog.get_logger()

GRACE_SECONDS = 30

# Takes the app and its own address; handed in by the caller, as serving knows no gradio.
MountPage = Callable[[FastAPI, str], None]


def run_server(settings: Settings, mount_page: MountPage | None = None) -> None:
    """Serve until SIGINT or SIGTERM; raises SetupError when it cannot start."""
    configure_logs(settings.log_level, settings.log_format)
    warnings.filterwarnings("ignore", module="PIL")  # odd metadata in an upload is no news to the operator
    prepare_data_folder(settings.data_dir)  # before the page, which writes there
    open_to_others = not is_loopback(settings.host)
    with open_socket(settings.host, settings.port, keys=open_to_others and _keys_made(settings.data_dir)) as listener:
        url = address_of(listener)
        if open_to_others:
            log.warning("open to other machines, without encryption; put a proxy with TLS in front", host=settings.host)
        app = create_app(settings)
        if mount_page is not None:
            mount_page(app, url)
        signal.signal(signal.SIGTERM, _exit_quietly)
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(_serve(app, listener, url))
        except KeyboardInterrupt:
            log.info("stopped")


async def _serve(app: FastAPI, listener: socket.socket, url: str) -> None:
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=GRACE_SECONDS
    )
    # Entered here and not by uvicorn, so that a failing start reaches the caller as the exception it is.
    async with app.router.lifespan_context(app):
        log.info("ready", url=url, docs=f"{url}/docs")
        await uvicorn.Server(config).serve(sockets=[listener])


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one; None for Python's own loop."""
    try:
        import uvloop
    except ImportError:  # on Windows
        return None
    return uvloop.new_event_loop


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; raises AddressRefused for what is none."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise AddressRefused(
            f"{host!r} is not an address; use 127.0.0.1, ::1 or localhost, or with API keys another such as 0.0.0.0"
        ) from None


def open_socket(host: str, port: int, *, keys: bool = False) -> socket.socket:
    """Bind to an address, with API keys any, else loopback only; the port may be 0 for any free one."""
    if not is_loopback(host) and not keys:
        raise AddressRefused(
            f"without API keys Readleaf answers this machine only, and {host} is open to others; "
            "make a key with `readleaf keys create`, or use 127.0.0.1, ::1 or localhost"
        )
    address = "127.0.0.1" if host == "localhost" else host
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. Else the body of an answer waits 40 ms for the client to acknowledge the headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((address, port))
    except OSError as error:
        listener.close()
        raise PortInUse(
            f"port {port} of {host} cannot be had ({error.strerror}); "
            "stop what uses it, or choose another with --port or READLEAF_PORT"
        ) from error
    return listener


def address_of(listener: socket.socket) -> str:
    """The URL that reaches a bound socket from this machine."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # listens everywhere; nothing can be sent there
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _keys_made(data_dir: Path) -> bool:
    with (
        hold_data_folder(data_dir, "readleaf serve"),  # else a newer Readleaf would change what an older one works with
        open_database(data_dir / FILE_NAME) as database,
        database.reading() as session,
    ):
        return any_keys(session)


def _exit_quietly(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
