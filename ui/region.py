"""Choosing a part of a picture to look at, by drawing a frame on it."""

from pathlib import Path

import gradio as gr

SCRIPT = (Path(__file__).parent / "region.js").read_text()
TEMPLATE = """
${value
  ? '<span>Looking at the part in the frame.</span> <button type="button" data-do="all">Look at all of it</button>'
  : '<button type="button" data-do="part">Look at a part of it</button>'}
"""


def region_field(elem_id: str) -> gr.HTML:
    """A line below a picture field; its value is left,top,width,height in the picture's pixels, or nothing.

    Its event `apply` says that a person chose another part.
    """
    return gr.HTML(
        "", html_template=TEMPLATE, js_on_load=SCRIPT, elem_id=elem_id, elem_classes="rl-region", visible=False
    )
