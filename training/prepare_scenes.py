"""What a renderer of scenes needs: fonts that can be read, and photographs without words to write on."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import cv2
import numpy as np

from training.data.scene_rendering import SceneRenderer
from training.data.scenes import Scene
from training.data.table import read_table
from training.data.vocabulary import Vocabulary
from training.data.words import Pixels
from training.errors import DataError
from training.models.recognizer import load_recognizer
from training.prepare_words import legible_on_this_machine

GROUND = 384  # pixels of a ground's side, where it is cut from a photograph with words
WINDOWS, TRIES = 2, 30  # grounds a photograph, and how many places are tried
MOST = 600  # photographs of a folder
SUFFIXES = (".jpg", ".jpeg", ".png")


def scene_renderer(scenes: Sequence[Scene], folders: Sequence[Path]) -> SceneRenderer:
    """A renderer that writes on parts of training photographs without words, and on photographs of these folders."""
    fonts = legible_on_this_machine(load_recognizer("published"))
    grounds = [*wordless_parts([scene for scene in scenes if scene.set_name == "train"]), *photographs(folders)]
    return SceneRenderer(fonts, Vocabulary(), grounds)


def wordless_parts(scenes: Sequence[Scene]) -> Iterator[Pixels]:
    """Squares of photographs in which no word stands, not even one that nobody cares for."""
    random = np.random.default_rng(0)
    for scene in scenes:
        pixels = scene.load()
        low, high = scene.quads.min(axis=1), scene.quads.max(axis=1)
        room = np.array(pixels.shape[1::-1]) - GROUND
        if (room < 1).any():
            continue
        corners = random.integers(0, room, size=(TRIES, 2))
        free = (corner for corner in corners if not ((low < corner + GROUND) & (high > corner)).all(axis=1).any())
        for x, y in islice(free, WINDOWS):
            yield np.ascontiguousarray(pixels[y : y + GROUND, x : x + GROUND])


def photographs(folders: Sequence[Path]) -> Iterator[Pixels]:
    """Pictures of folders, an even choice of each; where a folder says which are for training, only those."""
    for folder in folders:
        if not folder.is_dir():
            raise DataError(f"there is no folder of photographs at {folder}")
        table = folder / "labels.tsv"
        if table.is_file():
            files = [folder / row["file"] for row in read_table(table, {"file", "set"}) if row["set"] == "train"]
        else:
            files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES)
        for file in files[:: max(1, -(-len(files) // MOST))]:
            data = np.fromfile(file, dtype=np.uint8)
            pixels = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB) if data.size else None
            if pixels is not None:
                yield np.asarray(pixels, dtype=np.uint8)


def ground_sources(folders: Sequence[Path]) -> list[str]:
    """Where photographs to draw on come from: the sources that `labels.tsv` names, or the folder's name."""
    found: set[str] = set()
    for folder in folders:
        table = folder / "labels.tsv"
        rows = read_table(table, {"file"}) if table.is_file() else []
        found |= {row["source"] for row in rows if row.get("source")} or {folder.resolve().name}
    return sorted(found)
