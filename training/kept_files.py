"""What took long to compute is kept in `runs/prepared/` and found again by all that it depends on."""

import hashlib
import json
from pathlib import Path
from typing import Any

KEPT = Path("runs/prepared")


def kept_file(name: str, question: Any) -> Path:
    """Where the answer to a question is kept; its folder is there."""
    KEPT.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(json.dumps(question).encode()).hexdigest()[:16]
    return KEPT / f"{digest}-{name}"
