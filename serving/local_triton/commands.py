"""`readleaf triton start|stop|status`. Heavy parts are imported when a command runs."""

from pathlib import Path
from typing import Annotated

import typer

triton_app = typer.Typer(help="A real Triton on this machine, without Docker.", no_args_is_help=True)
DataDir = Annotated[Path | None, typer.Option(help="Data folder; Triton lives in it (READLEAF_DATA_DIR).")]


@triton_app.command("start")
def start(
    data_dir: DataDir = None,
    grpc_port: Annotated[int, typer.Option(help="Port for the service; 0 picks a free one.", min=0, max=65535)] = 8001,
    metrics_port: Annotated[int, typer.Option(help="Port for Prometheus.", min=0, max=65535)] = 8002,
    http_port: Annotated[int, typer.Option(help="Port for HTTP.", min=0, max=65535)] = 8003,
    instances: Annotated[int, typer.Option(help="Copies of each model that run side by side.", min=1, max=64)] = 1,
) -> None:
    """Install Triton if need be, start it on the model repository, and check what each model answers.

    If it runs already, it takes up new versions of models.
    """
    from serving.errors import SetupError
    from serving.local_triton.server import LocalTriton, Ports
    from serving.local_triton.value_check import check_values
    from serving.logs import configure_logs
    from serving.settings import load_settings

    settings = load_settings(data_dir=data_dir)
    configure_logs("warning", settings.log_format)
    triton = LocalTriton(settings.data_dir)
    running, started = triton.start(settings.models_dir, Ports(grpc_port, metrics_port, http_port), _say, instances)
    try:
        for line in check_values(running.url, settings.models_dir, reload=not started):
            typer.echo(line)
    except SetupError:
        if started:
            triton.stop()
        raise
    typer.echo(f"Triton {'runs' if started else 'ran already'}, process {running.pid}. To use it:")
    typer.echo(f"  READLEAF_RUNTIME=triton READLEAF_TRITON_URL={running.url} readleaf serve")


@triton_app.command("stop")
def stop(data_dir: DataDir = None) -> None:
    """Stop Triton after the runs that are under way."""
    from serving.local_triton.server import LocalTriton
    from serving.settings import load_settings

    stopped = LocalTriton(load_settings(data_dir=data_dir).data_dir).stop()
    typer.echo("Triton has stopped" if stopped else "no Triton runs on this data folder")


@triton_app.command("status")
def status(data_dir: DataDir = None) -> None:
    """Say whether Triton runs and what it serves; exits with 1 if it does not, or is not ready."""
    from serving.local_triton.server import LocalTriton
    from serving.local_triton.value_check import served_models
    from serving.settings import load_settings

    running = LocalTriton(load_settings(data_dir=data_dir).data_dir).running()
    if running is None:
        typer.echo("no Triton runs on this data folder")
        raise typer.Exit(1)
    ready = running.is_ready()
    ports = running.ports
    typer.echo(f"process {running.pid}, {'ready' if ready else 'not ready'}")
    typer.echo(f"gRPC {running.url}, HTTP {ports.http}, metrics {ports.metrics}")
    if not ready:
        raise typer.Exit(1)
    for line in served_models(running.url):
        typer.echo(line)


def _say(text: str) -> None:
    typer.echo(text, err=True)
