"""Identify: pictures of one organism, what it may be, and a way to ask an expert."""

import html
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gradio as gr
from gradio.components.gallery import GalleryData, GalleryVideo

from serving.client import Client
from ui import identify_result
from ui.gallery import PHOTOGRAPHS, credits_line
from ui.manage import PRIVATE, REFUSALS, names, note_of

MOST_PICTURES = 5
CHOOSE = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-place]");
  if (button) trigger("select", { place: Number(button.dataset.place) });
});
"""
ORGANS = ("flower", "leaf", "fruit", "bark", "habit", "other")


def build_tab(page: gr.Blocks, client: Client, sunflower: Path) -> None:
    """Add the tab to the page that is being built."""
    samples = [sunflower, *(each.file for each in PHOTOGRAPHS)]
    with gr.Tab("Identify", id="identify") as tab:
        with gr.Row():
            with gr.Column(scale=2):
                collection = gr.Dropdown(label="Compare with", elem_id="identify-collection", interactive=True)
                pictures = _pictures_field()
            with gr.Column(scale=3):
                result = gr.HTML(elem_id="identify-result", padding=False)
                with gr.Column(visible=False, elem_id="identify-send") as sending:
                    facts, organs = _facts_fields()
                    send = gr.Button("Send to the experts", elem_id="send", variant="primary")
                note = gr.HTML(elem_id="identify-note", padding=False)
        strip = gr.HTML(sample_strip(samples), elem_id="identify-gallery", padding=False, js_on_load=CHOOSE)
    page.load(partial(names, client), outputs=collection, **PRIVATE)
    tab.select(partial(keep_chosen, client), collection, collection, **PRIVATE)

    def take(event: gr.EventData) -> Any:  # Gradio sees what a function wants, but not what a partial does
        return take_sample(samples, event)

    look = {
        "fn": partial(identify, client),
        "inputs": [collection, pictures],
        "outputs": [result, sending, note, *organs],
        **PRIVATE,
    }
    gr.on([pictures.change, collection.change], **look, trigger_mode="always_last")
    strip.select(take, outputs=pictures, **PRIVATE).then(**look)  # a gallery tells of changes by hand only
    send.click(
        partial(submit, client),
        [collection, pictures, *facts, *organs],
        [note, sending],
        trigger_mode="once",
        **PRIVATE,
    )


def _pictures_field() -> gr.Gallery:
    """Its value is the paths of the files as they came: the service decodes, and words its refusals for people."""
    field = gr.Gallery(
        label="One to five pictures of one organism",
        elem_id="identify-pictures",
        type="filepath",
        file_types=["image"],
        sources=["upload", "webcam", "clipboard"],
        columns=3,
        height=300,
        interactive=True,
        buttons=[],
    )
    field.preprocess = _paths  # type: ignore[method-assign, assignment]
    return field


def _paths(payload: GalleryData | None) -> list[str]:
    entries = payload.root if payload else []
    return [(each.video if isinstance(each, GalleryVideo) else each.image).path or "" for each in entries]


def _facts_fields() -> tuple[list[Any], list[gr.Dropdown]]:
    """When, where, who, and what each picture shows; all of it may stay empty."""
    with gr.Accordion("When, where and by whom (if you know)", open=False, elem_id="identify-facts"):
        with gr.Row():
            observed = gr.Textbox(
                label="When", placeholder="2026-05-14", elem_id="observed", max_lines=1, min_width=140
            )
            place = gr.Textbox(label="Where", placeholder="Lobau, Vienna", elem_id="place", max_lines=1, min_width=140)
            observer = gr.Textbox(label="Who saw it", elem_id="observer", max_lines=1, min_width=140)
        with gr.Row():
            # Not numbers: an empty field of those is 0, which is a place in the sea.
            latitude = gr.Textbox(
                label="Latitude", placeholder="48.1789", elem_id="latitude", max_lines=1, min_width=140
            )
            longitude = gr.Textbox(
                label="Longitude", placeholder="16.5012", elem_id="longitude", max_lines=1, min_width=140
            )
        notes = gr.Textbox(label="Notes", lines=2, elem_id="notes", max_length=5000)
        with gr.Row():
            organs = [
                gr.Dropdown(
                    [("not said", ""), *((organ, organ) for organ in ORGANS)],
                    value="",
                    label=f"Picture {number} shows",
                    elem_id=f"organ-{number}",
                    visible=False,
                    min_width=140,
                )
                for number in range(1, MOST_PICTURES + 1)
            ]
    return [observed, place, observer, latitude, longitude, notes], organs


def sample_strip(samples: Sequence[Path]) -> str:
    """Pictures to try it with, as buttons that have names; those of gr.Examples have none for a gallery."""
    buttons = "".join(
        f'<li><button type="button" data-place="{place}">'
        f'<img src="gradio_api/file={html.escape(quote(str(file)))}" alt="Try {html.escape(file.stem)}"></button></li>'
        for place, file in enumerate(samples)
    )
    return (
        f'<div class="rv-samples"><p>No picture at hand? Try one of these</p><ul>{buttons}</ul>{credits_line()}</div>'
    )


def take_sample(samples: Sequence[Path], event: gr.EventData) -> Any:
    """The sample that was pointed at takes the place of all pictures."""
    place = (event._data or {}).get("place")
    return [str(samples[place])] if isinstance(place, int) and 0 <= place < len(samples) else gr.skip()


def keep_chosen(client: Client, chosen: str | None) -> Any:
    """The choice of collections, which may have changed in another tab."""
    try:
        known = [entry.name for entry in client.collections().collections]
    except REFUSALS:
        return gr.skip()
    return gr.Dropdown(choices=known, value=chosen if chosen in known else (known[0] if known else None))


def identify(client: Client, collection: str | None, files: Sequence[str] | None) -> tuple[Any, ...]:
    """The result; another organism can be sent once there is one, and each of its pictures can be described."""
    count = len(files or ())
    fields = [gr.Dropdown(value="", visible=number < count) for number in range(MOST_PICTURES)]
    shown, sendable = _found(client, collection, files or ())
    return shown, gr.Column(visible=sendable), "", *fields


def _found(client: Client, collection: str | None, files: Sequence[str]) -> tuple[str, bool]:
    if len(files) > MOST_PICTURES:
        return identify_result.refusal(
            f"at most {MOST_PICTURES} pictures show one organism; remove some of them"
        ), False
    try:
        if not collection:
            return identify_result.NO_COLLECTION, False
        if not files:
            return identify_result.invite(client.collection(collection)), False
        answer = client.identify(collection, [Path(file) for file in files])
    except REFUSALS as error:
        return identify_result.refusal(str(error)), False
    return identify_result.show(answer), True


def submit(
    client: Client,
    collection: str | None,
    files: Sequence[str] | None,
    observed: str,
    place: str,
    observer: str,
    latitude: str,
    longitude: str,
    notes: str,
    *organs: str,
) -> tuple[str, Any]:
    """The observation goes to the experts; it cannot be sent twice by mistake."""
    if not collection or not files:
        return note_of("choose a collection and some pictures first"), gr.skip()
    try:
        made = client.submit_observation(
            collection,
            [Path(file) for file in files],
            observed=observed.strip() or None,
            place=place.strip() or None,
            observer=observer.strip() or None,
            latitude=latitude.strip().replace(",", ".") or None,
            longitude=longitude.strip().replace(",", ".") or None,
            notes=notes.strip(),
            organs=_organs(organs[: len(files)]),
        )
    except REFUSALS as error:
        return note_of(error), gr.skip()
    return identify_result.sent(made), gr.Column(visible=False)


def _organs(named: Sequence[str | None]) -> str | None:
    """One for each picture, as the API wants it, or none at all."""
    return ",".join(organ or "other" for organ in named) if any(named) else None
