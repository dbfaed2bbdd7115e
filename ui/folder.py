"""Uploading a folder with its sub-folders, which Gradio's own field forgets the names of."""

import json
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import gradio as gr

SCRIPT = (Path(__file__).parent / "folder.js").read_text()
TEMPLATE = """
<label class="rl-folder">Choose a folder<input type="file" webkitdirectory multiple></label> <span></span>
"""


class FolderFile(NamedTuple):
    """A file as it came, and where it lay in the visitor's folder."""

    path: Path
    name: PurePosixPath

    @property
    def label(self) -> str | None:
        """The folder it lay in, unless that is the one that was chosen."""
        return self.name.parts[-2] if len(self.name.parts) > 2 else None


def folder_field(elem_id: str) -> gr.HTML:
    """A button to choose a folder; its event `upload` comes when all pictures in it are here."""
    return gr.HTML("", html_template=TEMPLATE, js_on_load=SCRIPT, elem_id=elem_id)


def uploaded(value: Any, uploads: Path) -> list[FolderFile]:
    """What the field holds. The browser names the paths, so those outside of the uploads are left out."""
    try:
        entries = [
            FolderFile(Path(entry["path"]).resolve(), PurePosixPath(entry["name"])) for entry in json.loads(value)
        ]
    except (TypeError, ValueError, KeyError):
        return []
    return [entry for entry in entries if entry.path.is_relative_to(uploads.resolve()) and entry.path.is_file()]
