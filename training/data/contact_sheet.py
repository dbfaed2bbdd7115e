"""A contact sheet of rendered words, to look at."""

from pathlib import Path

import cv2
import numpy as np
from rich.progress import track

from training.data.canvas import Canvas, place
from training.data.fonts import find_fonts
from training.data.rendering import Renderer
from training.data.vocabulary import Vocabulary

CELL = 200  # pixels, wide
COLUMNS = 10


def draw_sheet(file: Path, count: int, seed: int) -> None:
    """`count` words in ten columns, each above the text that it should be read as."""
    renderer = Renderer(find_fonts(Path("runs/prepared/fonts.json")), Vocabulary())
    random = np.random.default_rng(seed)
    canvas = Canvas(40, CELL, step=CELL, longest=CELL)
    cells = []
    for _ in track(range(count), description="rendering"):
        crop, text = renderer.draw(random)
        caption = np.full((16, CELL, 3), 255, dtype=np.uint8)
        cv2.putText(caption, text, (2, 12), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (0, 0, 0), 1, cv2.LINE_AA)
        cells.append(np.concatenate([place(crop, canvas), caption]))
    blank = np.full_like(cells[0], 255)
    cells += [blank] * (-count % COLUMNS)
    rows = [np.concatenate(cells[start : start + COLUMNS], axis=1) for start in range(0, len(cells), COLUMNS)]
    file.parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(file), cv2.cvtColor(np.concatenate(rows), cv2.COLOR_RGB2BGR)):
        raise OSError(f"{file} could not be written; is it a .png?")
