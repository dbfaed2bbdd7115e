"""What can be set, from flags of `readleaf serve` or from the environment (`READLEAF_…`)."""

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from serving.errors import SettingsInvalid

MEGABYTE = 1_000_000
OF_CLIENTS = {"READLEAF_URL", "READLEAF_KEY"}  # how a command reaches a running service; not what one is started with


class Settings(BaseSettings):
    """Read once at the start, then passed on; nothing changes while the server runs."""

    model_config = SettingsConfigDict(env_prefix="READLEAF_", frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", description="Address to listen on; only loopback while no API key exists.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    data_dir: Path = Field(
        default=Path.home() / ".local/share/readleaf", description="Folder for everything the service writes."
    )
    models_dir: Path = Field(
        default=Path(__file__).parents[1] / "models",
        description="The model repository, in Triton's layout; by default the one beside the code.",
    )
    starter: bool = Field(
        default=True, description="Offer the collection of flowers and leaves, once in the life of a data folder."
    )
    ui: bool = Field(default=True, description="Serve the page at `/`; without it only the API answers.")
    runtime: Literal["onnx", "triton"] = Field(
        default="onnx", description="What runs the models: `onnx` in this process, or a `triton` server."
    )
    triton_url: str = Field(default="127.0.0.1:8001", description="For `triton`: host:port of its gRPC service.")
    triton_timeout: float = Field(
        default=10, gt=0, le=600, description="For `triton`: seconds that one run of a model may take."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="Where models run; `auto` takes a GPU when onnxruntime offers one."
    )
    threads: int = Field(
        default=0,
        ge=0,
        le=256,
        description="Threads for inference and decoding; 0 = one per core, or 16 that mostly wait for `triton`.",
    )
    max_running: int = Field(default=4, ge=1, le=256, description="Requests worked on at the same time.")
    max_waiting: int = Field(default=32, ge=0, le=10_000, description="Requests that may wait; one more gets a 503.")
    max_image_bytes: int = Field(default=20 * MEGABYTE, ge=1, description="Largest image file, in bytes.")
    max_image_pixels: int = Field(default=50 * MEGABYTE, ge=1, description="Largest image, in pixels.")
    max_images: int = Field(default=64, ge=1, le=1000, description="Images in one call.")
    max_body_bytes: int = Field(default=128 * MEGABYTE, ge=1, description="Largest request body, in bytes.")
    log_format: Literal["console", "json"] = Field(default="console", description="Log lines for people, or as JSON.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe log lines shown."
    )


def load_settings(**flags: Any) -> Settings:
    """Settings from flags (None = not given) and the environment; raises SettingsInvalid naming the culprit."""
    known = {f"READLEAF_{name.upper()}" for name in Settings.model_fields}
    for variable in sorted(os.environ):
        if variable.startswith("READLEAF_") and variable not in known | OF_CLIENTS:
            raise SettingsInvalid(f"{variable} is not a setting; there are {', '.join(sorted(known))}")
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        variable = "READLEAF_" + "_".join(map(str, first["loc"])).upper()
        raise SettingsInvalid(f"{variable} is {first['input']!r}: {first['msg']}") from error
