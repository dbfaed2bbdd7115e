"""A collection as a zip file that unpacks to a folder to train on: `images/` and `labels.tsv`.

The table comes last and holds just what was written before it, so that it fits the pictures even if somebody relabels
or deletes items meanwhile. One picture and some rows are in memory at a time, and of each file its place in the
archive, as a zip file ends with a list of these.
"""

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import IO
from zipfile import ZIP_DEFLATED

from zipstream import ZipStream

from serving.errors import PictureMissing
from serving.library import Library
from serving.store.tables import Item

AT_ONCE = 500  # items in one query
IN_MEMORY = 1 << 20  # bytes of the table, before it goes to the disk
CHUNK = 1 << 16
HEADER = ("file", "class_name", "source", "set")
# Not `mimetypes`, which knows more or less of them from one system to the next.
SUFFIXES = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "image/bmp": ".bmp",
    "image/tiff": ".tiff",
}
ONE_LINE = str.maketrans("\t\r\n", "   ")  # the table knows no quotes


def dataset_zip(library: Library, collection: str) -> Iterator[bytes]:
    """The pieces of the zip file: all items with a picture and a label. Raises CollectionMissing at once."""
    library.get_collection_id(collection)
    return _pieces(library, collection)


def chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """A file from its beginning, piece by piece."""
    stream.seek(0)
    while piece := stream.read(CHUNK):
        yield piece


def _pieces(library: Library, collection: str) -> Iterator[bytes]:
    archive = ZipStream()  # stored: pictures are compressed already
    with SpooledTemporaryFile(max_size=IN_MEMORY) as table:
        table.write(_row(*HEADER))
        for item in _labelled(library, collection):
            try:
                picture = library.read_picture(item)
            except PictureMissing:  # deleted since the page was read
                continue
            name = f"images/{item.id}{SUFFIXES.get(item.media_type or '', '')}"
            archive.add(picture, name)
            yield from archive.all_files()
            table.write(_row(name, item.label or "", collection, "train"))
        archive.add(chunks(table), "labels.tsv", compress_type=ZIP_DEFLATED)
        yield from archive.finalize()


def _labelled(library: Library, collection: str) -> Iterator[Item]:
    """Page by page: one long transaction would keep the database's log from being cleared as long as a client reads."""
    after = 0
    while page := library.list_items(collection, label=None, after=after, limit=AT_ONCE):
        yield from (item for item in page if item.label and item.sha256)
        after = page[-1].id


def _row(*cells: str) -> bytes:
    return ("\t".join(cell.translate(ONE_LINE) for cell in cells) + "\n").encode()
