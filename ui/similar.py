"""Find similar: a picture, what looks like it in a collection, and what it is therefore likely to be."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from serving.client import ApiError, Client, ServiceUnreachable
from serving.schemas import JobInfo, NeighbourInfo
from ui import similar_result
from ui.picture import picture_field
from ui.sentences import sentence

NEIGHBOURS = 12
REFUSALS = (ApiError, ServiceUnreachable)
CHOOSE = "choose one of the pictures found first"
SHOWN_REFUSALS = 20
POLL_SECONDS = 0.3
PROGRESS = gr.Progress()  # Gradio fills it in where it stands as a default
Choice = tuple[str, int]  # what a person reads, and the item


def build_tab(page: gr.Blocks, client: Client) -> None:
    """Add the tab to the page that is being built."""
    with gr.Tab("Find similar", id="similar"):
        with gr.Row():
            with gr.Column(scale=2):
                collection = gr.Dropdown(label="Look in", elem_id="collection", interactive=True)
                picture = picture_field("Your picture", "query-picture")
                with gr.Row(elem_classes="rl-line"):
                    label = gr.Textbox(label="Keep it here as", elem_id="new-label", scale=2, max_lines=1)
                    add = gr.Button("Add it", elem_id="add", scale=1, min_width=90)
            with gr.Column(scale=3):
                result = gr.HTML(similar_result.HINT, elem_id="similar-result", padding=False)
                with gr.Row(visible=False, elem_classes="rl-line", elem_id="mend") as mend:
                    chosen = gr.Dropdown(label="Wrong label?", elem_id="chosen", scale=2)
                    better = gr.Textbox(label="Its right label", elem_id="better-label", scale=2, max_lines=1)
                    relabel = gr.Button("Save", elem_id="relabel", scale=1, min_width=90)
                    remove = gr.Button("Delete", elem_id="remove", scale=1, min_width=90, variant="stop")
        note = gr.HTML(elem_id="similar-note", padding=False)
        with gr.Accordion("Collections", open=False, elem_id="collections"):
            with gr.Row(elem_classes="rl-line"):
                name = gr.Textbox(label="Name of a new collection", elem_id="new-name", scale=3, max_lines=1)
                create = gr.Button("Make it", elem_id="create", scale=1)
            files = gr.File(
                label="Pictures to add to the collection above; or a zip file, a folder for each label",
                file_count="multiple",
                elem_id="many-files",
                height=140,
            )
            with gr.Row(elem_classes="rl-line"):
                kind = gr.Textbox(label="One label for all of them", elem_id="many-label", scale=3, max_lines=1)
                fill = gr.Button("Add them", elem_id="fill", scale=1)

    query, shown = [collection, picture], [result, mend, chosen]
    private: dict[str, Any] = {"api_visibility": "private"}
    search = {"fn": partial(find, client), "inputs": query, "outputs": shown, **private}
    page.load(partial(names, client), outputs=collection, **private)
    gr.on([picture.change, collection.change], trigger_mode="always_last", **search)
    gr.on([create.click, name.submit], partial(make, client), name, [collection, note, name], **private)
    gr.on([add.click, label.submit], partial(add_one, client), [*query, label], [note, label], **private).then(**search)
    fill.click(partial(add_many, client), [collection, files, kind], [note, files], **private).then(**search)
    gr.on(
        [relabel.click, better.submit], partial(save, client), [collection, chosen, better], [note, better], **private
    ).then(**search)
    remove.click(partial(delete, client), [collection, chosen], note, **private).then(**search)


def names(client: Client, chosen: str | None = None) -> Any:
    """The choice of collections, as it is now."""
    try:
        known = [entry.name for entry in client.collections().collections]
    except REFUSALS:
        known = []
    return gr.Dropdown(choices=known, value=chosen or (known[0] if known else None))


def find(client: Client, collection: str | None, file: str | None) -> tuple[Any, ...]:
    """Result, whether labels can be mended, and of which pictures."""
    hidden = gr.Row(visible=False), gr.Dropdown(choices=[], value=None)
    if not collection:
        return similar_result.NO_COLLECTION, *hidden
    if not file:
        return similar_result.HINT, *hidden
    try:
        answer = client.search(collection, Path(file), NEIGHBOURS)
    except REFUSALS as error:
        return similar_result.refusal(str(error)), *hidden
    choices = [describe(number, each) for number, each in enumerate(answer.neighbours, start=1)]
    return similar_result.show(answer), gr.Row(visible=bool(choices)), gr.Dropdown(choices=choices, value=None)


def describe(number: int, neighbour: NeighbourInfo) -> Choice:
    """A neighbour in a list of choices."""
    return f"{number}. {neighbour.label or 'no label'}", neighbour.item


def make(client: Client, name: str) -> tuple[Any, str, str]:
    """A new collection, chosen at once."""
    try:
        made = client.create_collection(name)
    except REFUSALS as error:
        return gr.skip(), note_of(error), name
    return names(client, made.name), note_of(f"{made.name} is ready: add pictures to it"), ""


def add_one(client: Client, collection: str | None, file: str | None, label: str) -> tuple[str, str]:
    """The picture that was asked about goes into the collection."""
    if not collection or not file:
        return note_of("choose a collection and a picture first"), label
    try:
        item = client.add_item(collection, Path(file), label.strip() or None)
    except REFUSALS as error:
        return note_of(error), label
    return note_of(f"added to {collection} as {item.label or 'a picture without a label'}"), ""


def save(client: Client, collection: str, item: int | None, label: str) -> tuple[str, str]:
    """Another label for one of the pictures found."""
    if item is None:
        return note_of(CHOOSE), label
    try:
        changed = client.relabel_item(collection, item, label.strip() or None)
    except REFUSALS as error:
        return note_of(error), label
    return note_of(f"picture {item} is now {changed.label or 'without a label'}"), ""


def delete(client: Client, collection: str, item: int | None) -> str:
    """One of the pictures found goes out of the collection."""
    if item is None:
        return note_of(CHOOSE)
    try:
        client.delete_item(collection, item)
    except REFUSALS as error:
        return note_of(error)
    return note_of(f"picture {item} is deleted")


def add_many(
    client: Client, collection: str | None, files: list[str] | None, label: str, progress: gr.Progress = PROGRESS
) -> tuple[str, None]:
    """Add pictures, or whole zip files; what cannot be added is named, the rest is in."""
    if not collection or not files:
        return note_of("choose a collection and some pictures first"), None
    seen, refused = 0, []
    try:
        for file in progress.tqdm(files, desc="adding"):
            if file.lower().endswith(".zip"):
                job = follow(client, client.import_archive(collection, Path(file), label.strip() or None), progress)
                seen += job.done
                refused += [f"{error.file}: {error.message}" for error in job.errors]
                continue
            seen += 1
            try:
                client.add_item(collection, Path(file), label.strip() or None)
            except ApiError as error:
                refused.append(f"{Path(file).name}: {error}")
    except REFUSALS as error:
        return note_of(error), None
    added = f"{seen - len(refused)} of {seen} pictures were added to {collection}"
    return note_of("; ".join([added, *refused[:SHOWN_REFUSALS]])), None


def follow(client: Client, job: JobInfo, progress: gr.Progress) -> JobInfo:
    """Wait for a job, showing how far it is."""
    while job.state in ("waiting", "running"):
        progress((job.done, job.total or 1), desc="adding", unit="pictures")
        time.sleep(POLL_SECONDS)
        job = client.job(job.id)
    return job


def note_of(message: object) -> str:
    """What happened, in one sentence."""
    kind = "rl-error" if isinstance(message, Exception) else "rl-done"
    return f'<p class="rl-note {kind}" role="status">{sentence(str(message))}</p>'
