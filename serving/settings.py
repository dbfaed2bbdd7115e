"""What can be set, from flags of `readleaf serve` or from the environment (`READLEAF_…`)."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

MEGABYTE = 1_000_000


class Settings(BaseSettings):
    """Read once at the start, then passed on; nothing changes while the server runs."""

    model_config = SettingsConfigDict(env_prefix="READLEAF_", frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on; only loopback while no API key exists.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    data_dir: Path = Field(
        Path.home() / ".local/share/readleaf", description="Folder for everything the service writes."
    )
    models_dir: Path = Field(
        Path(__file__).parents[1] / "models",
        description="The model repository, in Triton's layout; by default the one beside the code.",
    )
    ui: bool = Field(True, description="Serve the page at `/`; without it only the API answers.")
    runtime: Literal["onnx"] = Field("onnx", description="What runs the models: `onnx` is in process.")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Where models run; `auto` takes a GPU when onnxruntime offers one."
    )
    threads: int = Field(0, ge=0, le=256, description="Threads for inference and decoding; 0 = one per core.")
    max_running: int = Field(4, ge=1, le=256, description="Requests worked on at the same time.")
    max_waiting: int = Field(32, ge=0, le=10_000, description="Requests that may wait; one more gets a 503.")
    max_image_bytes: int = Field(20 * MEGABYTE, ge=1, description="Largest image file, in bytes.")
    max_image_pixels: int = Field(50 * MEGABYTE, ge=1, description="Largest image, in pixels.")
    max_images: int = Field(64, ge=1, le=1000, description="Images in one call.")
    max_body_bytes: int = Field(128 * MEGABYTE, ge=1, description="Largest request body, in bytes.")
    log_format: Literal["console", "json"] = Field("console", description="Log lines for people, or as JSON.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe log lines shown."
    )
