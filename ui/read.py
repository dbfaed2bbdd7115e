"""Read: the word on a crop, how sure each of its characters is, and what else it may be."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import gradio as gr

from serving.client import Client
from ui import read_result
from ui.manage import PRIVATE, REFUSALS
from ui.picture import picture_field


def build_tab(client: Client, samples: Sequence[Path]) -> None:
    """Add the tab to the page that is being built."""
    with gr.Tab("Read", id="read"):
        with gr.Row():
            with gr.Column(scale=2):
                picture = picture_field("A picture of one word", "word-picture")
            with gr.Column(scale=3):
                result = gr.HTML(
                    read_result.INVITATION, elem_id="read-result", padding=False, js_on_load=read_result.COPY
                )
        gr.Examples(
            [[str(file)] for file in samples],
            inputs=picture,
            label="No word at hand? Try one of these",
            cache_examples=False,
            elem_id="words",
        )
    picture.change(partial(read, client), picture, result, trigger_mode="always_last", **PRIVATE)


def read(client: Client, file: str | None) -> str:
    """The reading, as HTML."""
    if not file:
        return read_result.INVITATION
    try:
        [reading] = client.recognize([Path(file)], details=True).results
    except REFUSALS as error:
        return read_result.refusal(str(error))
    return read_result.show(reading)
