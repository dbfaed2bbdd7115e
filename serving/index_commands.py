"""What `readleaf index …` does: it talks to a running service, as an app would."""

import csv
import mimetypes
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table

from serving.client import SUFFIXES, ApiError, Client
from serving.errors import EntryRefused
from serving.schemas import ItemInfo, JobInfo, SearchResponse

POLL_SECONDS = 0.3


def show_collections(client: Client, console: Console) -> None:
    """A table of all collections."""
    table = Table("collection", "items", "labels", "outdated", box=None)
    for entry in client.collections().collections:
        table.add_row(entry.name, str(entry.items), str(len(entry.labels)), str(entry.outdated))
    console.print(table)


def import_pictures(client: Client, collection: str, source: Path, label: str | None, console: Console) -> int:
    """Add a zip file or a folder (with `labels.tsv`, or one below it for each label); returns how many were refused.

    The collection is made if need be. Pictures that are there already are passed over, so an import that was
    stopped is simply started again. What was refused is told at the end.
    """
    files = [] if source.is_file() else labelled_files(source)
    try:
        client.collection(collection)
    except ApiError as error:
        if error.problem.status != 404:
            raise
        client.create_collection(collection)
    if source.is_file():
        return _report(follow(client, client.import_archive(collection, source, label), console), console)
    added = known = 0
    refused: list[str] = []
    for file, found in track(files, description="adding", console=console):
        try:
            client.add_item(collection, file, label or found, {"file": file.relative_to(source).as_posix()})
            added += 1
        except ApiError as error:
            if error.problem.status == 409:
                known += 1
            else:
                refused.append(f"{file}: {error}")
        except OSError as error:
            refused.append(f"{file}: {error.strerror}")
    for line in refused:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"{added} added, {known} were there already, {len(refused)} refused")
    return len(refused)


def labelled_files(folder: Path) -> list[tuple[Path, str | None]]:
    """Pictures of a folder and their labels; `labels.tsv` has columns file and class_name, as `export` writes it."""
    table = folder / "labels.tsv"
    if not table.is_file():
        files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
        return [(file, file.parent.name if file.parent != folder else None) for file in files]
    with table.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        if not {"file", "class_name"} <= set(rows.fieldnames or ()):
            raise EntryRefused(f"{table} has no columns file and class_name; they are separated by tabs")
        return [(folder / row["file"], row["class_name"] or None) for row in rows if row["file"]]


def show_search(answer: SearchResponse, console: Console) -> None:
    """The nearest items and the vote."""
    if answer.rejected:
        console.print(f"none of these: {answer.reason}", markup=False, highlight=False, soft_wrap=True)
    else:
        console.print(
            ", ".join(f"{vote.label} {vote.score:.0%}" for vote in answer.labels[:5]) or "no neighbour has a label",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    table = Table("item", "score", "label", box=None)
    for neighbour in answer.neighbours:
        table.add_row(str(neighbour.item), f"{neighbour.score:.3f}", neighbour.label or "")
    console.print(table)


def export(client: Client, collection: str, folder: Path, console: Console) -> int:
    """Write a collection as a folder to train on: `images/` and `labels.tsv`; returns the number of pictures."""
    images = folder / "images"
    images.mkdir(parents=True)
    total = client.collection(collection).items
    count = 0
    with (folder / "labels.tsv").open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None, lineterminator="\n")
        table.writerow(["file", "class_name", "source", "set"])
        for item in track(_all_items(client, collection), description="writing", total=total, console=console):
            if item.image_url is None or item.label is None:
                continue
            name = f"{item.id}{mimetypes.guess_extension(item.media_type or '') or ''}"
            (images / name).write_bytes(client.fetch(item.image_url))
            table.writerow([f"images/{name}", item.label, collection, "train"])
            count += 1
    console.print(f"{count} of {total} items have a picture and a label, and are in {folder}")
    return count


def rebuild(client: Client, collection: str, console: Console) -> int:
    """Make vectors anew that another model made; returns how many could not be."""
    return _report(follow(client, client.rebuild(collection), console), console)


def follow(client: Client, job: JobInfo, console: Console) -> JobInfo:
    """Wait for a job with a progress bar; Ctrl-C cancels it."""
    with Progress(console=console) as progress:
        bar = progress.add_task(job.kind, total=job.total)
        try:
            while job.state in ("waiting", "running"):
                time.sleep(POLL_SECONDS)
                job = client.job(job.id)
                progress.update(bar, completed=job.done)
        except KeyboardInterrupt:
            job = client.cancel_job(job.id)
    return job


def _report(job: JobInfo, console: Console) -> int:
    for error in job.errors:
        console.print(f"{error.file}: {error.message}", markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"{job.state}: {job.done - job.refused} of {job.total} taken, {job.refused} refused {job.message}".rstrip()
    )
    return job.refused


def _all_items(client: Client, collection: str) -> Iterator[ItemInfo]:
    cursor: int | None = 0
    while cursor is not None:
        page = client.items(collection, cursor=cursor, limit=200)
        yield from page.items
        cursor = page.next_cursor
