"""An image field that hands its file on untouched."""

import gradio as gr
from gradio.data_classes import ImageData


def picture_field(label: str, elem_id: str) -> gr.Image:
    """A field to drop, paste or photograph a picture into; its value is the path of the file as it came.

    Gradio would decode the file itself and show its own exceptions, paths of the server included. The service
    decodes, and words its refusals for people. (A subclass would make Gradio write a .pyi file beside it.)
    """
    field = gr.Image(
        label=label,
        elem_id=elem_id,
        type="filepath",
        sources=["upload", "clipboard", "webcam"],
        height=340,
        buttons=["fullscreen"],
    )
    field.preprocess = _path  # type: ignore[method-assign]
    return field


def _path(payload: ImageData | None) -> str | None:
    return payload.path if payload else None
