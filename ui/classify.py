"""Classify: what a picture shows, how sure that is, and what was looked at."""

from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gradio as gr

from serving.client import Client
from serving.schemas import ModelInfo
from ui import classify_result
from ui.gallery import offer_gallery
from ui.manage import PRIVATE, REFUSALS
from ui.picture import picture_field
from ui.read import upright

OFTEN = 10.0  # times as often as in training, where somebody says that a label is common


def build_tab(page: gr.Blocks, client: Client, sunflower: Path) -> None:
    """Add the tab to the page that is being built."""
    with gr.Tab("Classify", id="classify"):
        with gr.Row():
            with gr.Column(scale=2):
                model = gr.Dropdown(label="Ask the model", elem_id="classify-model", interactive=True, visible=False)
                picture = picture_field("Your picture", "classify-picture")
                common = gr.Dropdown(
                    label="Common where it was taken (counts ten times)",
                    elem_id="classify-common",
                    multiselect=True,
                    interactive=True,
                )
            with gr.Column(scale=3):
                result = gr.HTML(elem_id="classify-result", padding=False)
        offer_gallery(picture, sunflower, "classify-gallery")
    asked = [model, picture, common]
    page.load(partial(choices, client), outputs=[model, common, result], **PRIVATE)
    model.change(partial(labels, client), model, common, **PRIVATE)
    gr.on(
        [picture.change, common.change, model.change],
        partial(classify, client, picture.temp_files),
        asked,
        result,
        trigger_mode="always_last",
        **PRIVATE,
    )


def choices(client: Client) -> tuple[Any, Any, str]:
    """Which models can be asked, what the first of them knows, and what to do."""
    known = _known(client)
    if not known:
        return gr.Dropdown(visible=False), gr.Dropdown(visible=False), classify_result.NO_MODEL
    first = known[0]
    several = gr.Dropdown(choices=[each.name for each in known], value=first.name, visible=len(known) > 1)
    return several, gr.Dropdown(choices=first.labels, value=[]), classify_result.invite(first)


def labels(client: Client, model: str | None) -> Any:
    """What the chosen model can name."""
    found = next((each for each in _known(client) if each.name == model), None)
    return gr.Dropdown(choices=found.labels if found else [], value=[])


def classify(client: Client, made: set[str], model: str | None, file: str | None, common: list[str]) -> str:
    """The result as HTML. Files in `made` are deleted with the uploads."""
    known = _known(client)
    asked = next((each for each in known if each.name == model), None) or (known[0] if known else None)
    if asked is None:
        return classify_result.NO_MODEL
    if not file:
        return classify_result.invite(asked)
    prior = {label: OFTEN for label in common or () if label in (asked.labels or ())}
    try:
        answer = client.classify(Path(file), model=asked.name, prior=prior, explain=True)
    except REFUSALS as error:
        return classify_result.refusal(str(error))
    shown = upright(Path(file))
    if shown != Path(file):
        made.add(str(shown))
    return classify_result.show(answer, asked, f"gradio_api/file={quote(str(shown))}")


def _known(client: Client) -> list[ModelInfo]:
    """Models that classify; the one that ships comes first."""
    try:
        found = [each for each in client.models().models if each.task == "classify"]
    except REFUSALS:
        return []
    return sorted(found, key=lambda each: each.name != "classifier")
