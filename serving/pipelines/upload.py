"""A picture on its way from a request to a pipeline."""

from dataclasses import dataclass

from serving.images import Region


@dataclass(frozen=True)
class Upload:
    """A picture as it came, with the name to call it by in an error."""

    name: str
    data: bytes
    region: Region | None = None  # look at this part only
