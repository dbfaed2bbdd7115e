"""Photographs to try the page with, freely licensed, each with its credit."""

import html
from dataclasses import dataclass
from pathlib import Path

import gradio as gr

FOLDER = Path(__file__).parent / "gallery"


@dataclass(frozen=True)
class Photograph:
    """One picture of the gallery."""

    name: str
    author: str
    licence: str

    @property
    def file(self) -> Path:
        """Where it lies."""
        return FOLDER / f"{self.name}.jpg"


PHOTOGRAPHS = (
    Photograph("dahlia", "vultilion", "CC BY 2.0"),
    Photograph("dandelions", "Clemens Engelhardt", "CC0"),
    Photograph("fig", "Trevor “Freespace”", "CC BY 4.0"),
    Photograph("coffee", "Rachel Michetti", "CC0"),
    Photograph("cat", "Stéfan van der Walt", "CC0"),
    Photograph("mountains", "Aitzol Berasategi", "CC BY 4.0"),
)


def offer_gallery(picture: gr.Image, sunflower: Path, elem_id: str) -> None:
    """Add pictures to try a field with, and who took them."""
    gr.Examples(
        [[str(file)] for file in (sunflower, *(each.file for each in PHOTOGRAPHS))],
        inputs=picture,
        label="No picture at hand? Try one of these",
        cache_examples=False,
        elem_id=elem_id,
    )
    gr.HTML(credits_line(), padding=False)


def credits_line() -> str:
    """Who took them, as HTML."""
    named = (f"{each.name} by {each.author} ({each.licence})" for each in PHOTOGRAPHS)
    return (
        f'<p class="rl-credits">The sunflower is drawn. Photographs, made smaller: {html.escape(", ".join(named))}.</p>'
    )
