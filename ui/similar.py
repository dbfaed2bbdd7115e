"""Find similar: a picture, what looks like it in a collection, and what it is therefore likely to be."""

from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from serving.client import Client
from ui import similar_result
from ui.gallery import offer_gallery
from ui.manage import PRIVATE, REFUSALS, build_shelf, names, note_of
from ui.picture import picture_field
from ui.region import region_field

NEIGHBOURS = 12
ANYTHING = ("anything", "")


def build_tab(page: gr.Blocks, client: Client, uploads: Path, sunflower: Path) -> None:
    """Add the tab to the page that is being built."""
    with gr.Tab("Find similar", id="similar"):
        chosen = gr.Number(visible=False)  # the item whose label is being mended; a State would keep a stream open
        with gr.Row():
            with gr.Column(scale=2):
                with gr.Row():
                    collection = gr.Dropdown(label="Look in", elem_id="collection", interactive=True, scale=3)
                    only = gr.Dropdown(
                        [ANYTHING],
                        value="",
                        label="Only",
                        elem_id="only",
                        interactive=True,
                        scale=2,
                        min_width=120,
                    )
                picture = picture_field("Your picture", "query-picture")
                region = region_field("region")
            with gr.Column(scale=3):
                result = gr.HTML(elem_id="similar-result", padding=False, js_on_load=similar_result.CHOOSE)
                with gr.Row(visible=False, elem_classes="rl-line", elem_id="mend") as mend:
                    better = gr.Textbox(label="Its right label", elem_id="better-label", scale=3, max_lines=1)
                    relabel = gr.Button("Save", elem_id="relabel", scale=1, min_width=90, variant="primary")
                    remove = gr.Button("Delete it", elem_id="remove", scale=1, min_width=90, variant="stop")
                with gr.Row(visible=False, elem_classes="rl-line", elem_id="keep") as keep:
                    label = gr.Textbox(label="Keep your picture here as", elem_id="new-label", scale=3, max_lines=1)
                    add = gr.Button("Add it", elem_id="add", scale=1, min_width=90)
        note = gr.HTML(elem_id="similar-note", padding=False)
        offer_gallery(picture, sunflower, "gallery")
        changes = build_shelf(client, uploads, collection, note)

    query, shown = [collection, picture, only, region], [result, mend, keep]
    refresh = {"fn": partial(find_anew, client), "inputs": query, "outputs": [*shown, only], **PRIVATE}
    page.load(partial(names, client), outputs=collection, **PRIVATE)
    collection.change(**refresh)
    gr.on(
        picture.change,
        partial(find_whole, client),
        [collection, picture, only],
        [*shown, region],
        trigger_mode="always_last",
        **PRIVATE,
    )
    gr.on([only.input, region.apply], partial(find, client), query, shown, trigger_mode="always_last", **PRIVATE)
    result.select(choose, outputs=[mend, better, chosen], **PRIVATE)
    changes += [
        gr.on([relabel.click, better.submit], partial(save, client), [collection, chosen, better], note, **PRIVATE),
        gr.on(
            [add.click, label.submit], partial(add_one, client), [collection, picture, label], [note, label], **PRIVATE
        ),
        remove.click(partial(delete, client), [collection, chosen], note, **PRIVATE),
    ]
    for change in changes:
        change.then(**refresh)


def find(client: Client, collection: str | None, file: str | None, only: str, region: str) -> tuple[Any, ...]:
    """The result; a new one has no item chosen yet, and a picture can be kept once there is one."""
    hidden = gr.Row(visible=False)
    try:
        if not collection:
            return similar_result.NO_COLLECTION, hidden, hidden
        if not file:
            return similar_result.invite(client.collection(collection)), hidden, hidden
        answer = client.search(collection, Path(file), NEIGHBOURS, only or None, region or None)
    except REFUSALS as error:
        return similar_result.refusal(str(error)), hidden, hidden
    # What is kept is the whole picture: while a part is looked at, a label would be taken for that of the part.
    return similar_result.show(answer, only), hidden, gr.Row(visible=not region)


def find_anew(client: Client, collection: str | None, file: str | None, only: str, region: str) -> tuple[Any, ...]:
    """The result, and what a search may be narrowed to, in a collection that is another or holds something else."""
    try:
        known = [entry.label for entry in client.collection(collection).labels] if collection else []
    except REFUSALS:
        known = []
    wanted = only if only in known else ""
    choices = [ANYTHING, *((label, label) for label in known)]
    return *find(client, collection, file, wanted, region), gr.Dropdown(choices=choices, value=wanted)


def find_whole(client: Client, collection: str | None, file: str | None, only: str) -> tuple[Any, ...]:
    """The result for another picture, of which no part is chosen yet."""
    return *find(client, collection, file, only, ""), gr.HTML("", visible=bool(file))


def choose(event: gr.EventData) -> tuple[Any, Any, int | None]:
    """A card was pointed at: its label can be mended."""
    data: dict[str, Any] = event._data or {}
    item, label = data.get("item"), str(data.get("label") or "")
    if not isinstance(item, int):
        return gr.Row(visible=False), "", None
    place = f"Right label of picture {data.get('number')}"
    return gr.Row(visible=True), gr.Textbox(value=label, label=place), item


def add_one(client: Client, collection: str | None, file: str | None, label: str) -> tuple[str, str]:
    """The picture that was asked about goes into the collection."""
    if not collection or not file:
        return note_of("choose a collection and a picture first"), label
    try:
        item = client.add_item(collection, Path(file), label.strip() or None)
    except REFUSALS as error:
        return note_of(error), label
    return note_of(f"added to {collection} as {item.label or 'a picture without a label'}"), ""


def save(client: Client, collection: str, item: float | None, label: str) -> str:
    """Another label for one of the pictures found."""
    if item is None:
        return note_of("choose one of the pictures found first")
    try:
        changed = client.relabel_item(collection, int(item), label.strip() or None)
    except REFUSALS as error:
        return note_of(error)
    return note_of(f"picture {item:.0f} is now {changed.label or 'without a label'}")


def delete(client: Client, collection: str, item: float | None) -> str:
    """One of the pictures found goes out of the collection."""
    if item is None:
        return note_of("choose one of the pictures found first")
    try:
        client.delete_item(collection, int(item))
    except REFUSALS as error:
        return note_of(error)
    return note_of(f"picture {item:.0f} is deleted")
