"""`readleaf triton start|stop|status|config`. Heavy parts are imported when a command runs."""

from pathlib import Path
from typing import Annotated

import typer

triton_app = typer.Typer(help="A real Triton on this machine, without Docker.", no_args_is_help=True)
DataDir = Annotated[Path | None, typer.Option(help="Data folder; Triton lives in it (READLEAF_DATA_DIR).")]


@triton_app.command("start")
def start(
    data_dir: DataDir = None,
    grpc_port: Annotated[
        int | None, typer.Option(help="Port for the service (that of READLEAF_TRITON_URL); 0: a free one.", max=65535)
    ] = None,
    http_port: Annotated[int | None, typer.Option(help="Port for HTTP; by default the second next.", max=65535)] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Port for Prometheus; by default the next.", max=65535)
    ] = None,
    instances: Annotated[int, typer.Option(help="Copies of each model that run side by side.", min=1, max=64)] = 1,
) -> None:
    """Install Triton if need be, start it on the model repository, and check what each model answers.

    If it runs already, it takes up new versions of models.
    """
    from serving.errors import SetupError
    from serving.local_triton.server import LocalTriton, ports_from
    from serving.local_triton.value_check import check_values
    from serving.logs import configure_logs
    from serving.settings import load_settings

    settings = load_settings(data_dir=data_dir)
    configure_logs("warning", settings.log_format)
    triton = LocalTriton(settings.data_dir)
    ports = ports_from(settings.triton_url, grpc_port, metrics_port, http_port)
    running, started = triton.start(settings.models_dir, ports, _say, instances)
    try:
        for line in check_values(running.url, settings.models_dir, reload=not started):
            typer.echo(line)
    except SetupError:
        if started:
            triton.stop()
        raise
    address = "" if running.url == settings.triton_url else f"READLEAF_TRITON_URL={running.url} "
    typer.echo(f"Triton {'runs' if started else 'ran already'} at {running.url}, process {running.pid}. To use it:")
    typer.echo(f"  READLEAF_RUNTIME=triton {address}readleaf serve")


@triton_app.command("config")
def config(
    models_dir: Annotated[Path | None, typer.Option(help="Model repository (READLEAF_MODELS_DIR).")] = None,
    instances: Annotated[int, typer.Option(help="Copies of each model on each GPU.", min=1, max=64)] = 1,
    tensorrt: Annotated[
        bool,
        typer.Option("--tensorrt", help="Compile models of one picture size for the GPU; the first run takes long."),
    ] = False,
) -> None:
    """Write config.pbtxt of every model anew, for Triton's own image (docker/README.md)."""
    from serving.repository import find_versions
    from serving.settings import load_settings
    from serving.triton_config import CONFIG_FILE, triton_config

    folder = load_settings(models_dir=models_dir).models_dir
    for name, versions in sorted(find_versions(folder).items()):
        if not versions.good:
            typer.echo(f"{name}: no version that can be served", err=True)
            continue
        manifests = {version: model.manifest for version, model in versions.good.items()}
        text = triton_config(manifests, instances=instances, tensorrt=tensorrt)
        (folder / name / CONFIG_FILE).write_text(text)
        compiled = ", compiled by TensorRT" if "tensorrt" in text else ""
        typer.echo(f"{name}: versions {', '.join(map(str, sorted(manifests)))}, {instances} instances{compiled}")


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
