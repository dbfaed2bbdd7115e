"""Collections, as a visitor makes, fills and deletes them."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from serving.client import ApiError, Client, ServiceUnreachable
from serving.schemas import JobInfo
from ui.folder import folder_field, uploaded
from ui.sentences import sentence

REFUSALS = (ApiError, ServiceUnreachable)
SHOWN_REFUSALS = 20
POLL_SECONDS = 0.3
PROGRESS = gr.Progress()  # Gradio fills it in where it stands as a default
PRIVATE: dict[str, Any] = {"api_visibility": "private"}
ASK_FIRST = "name => name && confirm(`Delete ${name} with all its pictures and labels?`) ? [name] : [null]"


def build_shelf(client: Client, uploads: Path, collection: gr.Dropdown, note: gr.HTML) -> list[Any]:
    """Add the fields below the search; returns the events after which the chosen collection holds something else."""
    with gr.Accordion("Collections", open=False, elem_id="collections"):
        with gr.Row(elem_classes="rl-line"):
            name = gr.Textbox(label="Name of a new collection", elem_id="new-name", scale=3, max_lines=1)
            create = gr.Button("Make it", elem_id="create", scale=1)
            drop = gr.Button("Delete the chosen one", elem_id="drop", scale=1, variant="stop")
        files = gr.File(
            label="Pictures for the chosen collection; or a zip file, a folder for each label",
            file_count="multiple",
            elem_id="many-files",
            height=140,
        )
        with gr.Row(elem_classes="rl-line"):
            kind = gr.Textbox(label="One label for all of them", elem_id="many-label", scale=3, max_lines=1)
            fill = gr.Button("Add them", elem_id="fill", scale=1)
            folder = folder_field("folder")
    gr.on([create.click, name.submit], partial(make, client), name, [collection, note, name], **PRIVATE)
    drop.click(partial(delete, client), collection, [collection, note], js=ASK_FIRST, **PRIVATE)
    return [
        fill.click(partial(add_files, client), [collection, files, kind], [note, files], **PRIVATE),
        folder.upload(partial(add_folder, client, uploads), [collection, folder, kind], note, **PRIVATE),
    ]


def names(client: Client, chosen: str | None = None) -> Any:
    """The choice of collections, as it is now."""
    try:
        known = [entry.name for entry in client.collections().collections]
    except REFUSALS:
        known = []
    return gr.Dropdown(choices=known, value=chosen or (known[0] if known else None))


def make(client: Client, name: str) -> tuple[Any, str, str]:
    """A new collection, chosen at once."""
    try:
        made = client.create_collection(name)
    except REFUSALS as error:
        return gr.skip(), note_of(error), name
    return names(client, made.name), note_of(f"{made.name} is ready: add pictures to it"), ""


def delete(client: Client, name: str | None) -> tuple[Any, Any]:
    """A collection is gone, if the visitor said yes to that."""
    if not name:
        return gr.skip(), gr.skip()
    try:
        client.delete_collection(name)
    except REFUSALS as error:  # perhaps it is gone already
        return names(client), note_of(error)
    return names(client), note_of(f"{name} is deleted")


def add_files(
    client: Client, collection: str | None, files: list[str] | None, label: str, progress: gr.Progress = PROGRESS
) -> tuple[str, None]:
    """Add pictures, or whole zip files."""
    if not collection or not files:
        return note_of("choose a collection and some pictures first"), None
    seen = added = 0
    refused: list[str] = []
    try:
        for file in progress.tqdm(files, desc="adding"):
            if file.lower().endswith(".zip"):
                job = follow(client, client.import_archive(collection, Path(file), label.strip() or None), progress)
                seen, added = seen + (job.total or 0), added + job.done - job.refused
                refused += [] if job.state == "done" else [f"{Path(file).name}: {job.state} {job.message}".strip()]
                refused += [f"{error.file}: {error.message}" for error in job.errors]
            else:
                reasons = _add(client, collection, Path(file), Path(file).name, label.strip() or None)
                seen, added = seen + 1, added + (not reasons)
                refused += reasons
    except REFUSALS as error:
        return note_of(error), None
    return _told(collection, added, seen, refused), None


def add_folder(
    client: Client, uploads: Path, collection: str | None, value: Any, label: str, progress: gr.Progress = PROGRESS
) -> str:
    """Add the pictures of a folder; the folders in it are their labels, unless one is given for all."""
    files = uploaded(value, uploads)
    if not collection or not files:
        return note_of("choose a collection, and a folder with pictures in it")
    refused: list[str] = []
    try:
        for file in progress.tqdm(files, desc="adding"):
            refused += _add(client, collection, file.path, str(file.name), label.strip() or file.label)
    except REFUSALS as error:
        return note_of(error)
    return _told(collection, len(files) - len(refused), len(files), refused)


def _add(client: Client, collection: str, file: Path, name: str, label: str | None) -> list[str]:
    """Add one picture; returns why not, if so."""
    try:
        client.add_item(collection, file, label, {"file": name})
    except ApiError as error:
        return [f"{name}: {error}"]
    return []


def _told(collection: str, added: int, seen: int, refused: list[str]) -> str:
    """What cannot be added is named, the rest is in."""
    done = f"{added} of {seen} pictures were added to {collection}"
    return note_of("; ".join([done, *refused[:SHOWN_REFUSALS]]))


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
