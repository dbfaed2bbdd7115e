"""Read: all words of a picture, where they stand, and how sure they are."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

import gradio as gr
from PIL import ExifTags, Image, ImageOps

from serving.client import Client
from ui import read_result
from ui.manage import PRIVATE, REFUSALS
from ui.picture import picture_field

HERE = Path(__file__).parent
SCRIPT = "".join((HERE / name).read_text() for name in ("downloads.js", "read.js"))
PNG_MODES = ("1", "L", "LA", "I;16", "P", "RGB", "RGBA")


def build_tab(client: Client, samples: Sequence[Path]) -> None:
    """Add the tab to the page that is being built."""
    with gr.Tab("Read", id="read"):
        with gr.Row(elem_id="read-row"):
            with gr.Column(scale=2, elem_id="read-field"):
                picture = picture_field("A picture with words", "word-picture")
            with gr.Column(scale=3):
                result = gr.HTML(read_result.INVITATION, elem_id="read-result", padding=False, js_on_load=SCRIPT)
        gr.Examples(
            [[str(file)] for file in samples],
            inputs=picture,
            label="No picture at hand? Try one of these",
            cache_examples=False,
            elem_id="words",
        )
    picture.change(partial(read, client, picture.temp_files), picture, result, trigger_mode="always_last", **PRIVATE)
    result.clear(None, js="() => null", outputs=picture, **PRIVATE)


def read(client: Client, made: set[str], file: str | None) -> str:
    """The result as HTML. Files in `made` are deleted with the uploads."""
    if not file:
        return read_result.INVITATION
    try:
        answer = client.read(Path(file), min_confidence=0.0)  # the slider hides what is doubtful
    except REFUSALS as error:
        return read_result.refusal(str(error))
    shown = upright(Path(file))
    if shown != Path(file):
        made.add(str(shown))
    # Relative to the page, which may stand behind a prefix.
    return read_result.show(answer, f"gradio_api/file={quote(str(shown))}", Path(file).name)


def upright(file: Path) -> Path:
    """A file that every browser shows as the service saw it: they know no TIFF, and turn hardly more than JPEG."""
    try:
        with Image.open(file) as picture:
            turned = picture.format != "JPEG" and picture.getexif().get(ExifTags.Base.Orientation, 1) != 1
            if picture.format != "TIFF" and not turned:
                return file
            copy = file.with_name(f"{file.stem}-upright.png")
            stands = ImageOps.exif_transpose(picture)
            (stands if stands.mode in PNG_MODES else stands.convert("RGB")).save(copy, compress_level=1)
    except Exception:  # broken metadata provoke anything; the service can do without them, and so can the page
        return file
    return copy
