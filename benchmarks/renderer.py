"""How many words a second the renderer draws on all cores. Writes renderer.md."""

import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from training.data.fonts import find_fonts
from training.data.rendering import Renderer
from training.data.vocabulary import Vocabulary

ROOT = Path(__file__).parents[1]
WORDS = 1500  # a process
FONTS = ROOT / "runs/prepared/fonts.json"


def main() -> None:
    """Draw on every core at once."""
    fonts = find_fonts(FONTS)
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores) as workers:
        list(workers.map(draw, range(cores)))  # warm: fonts are opened
        started = time.perf_counter()
        list(workers.map(draw, range(cores)))
        taken = time.perf_counter() - started
    rate = cores * WORDS / taken
    Path(__file__).with_suffix(".md").write_text(f"""# Rendering words

`python benchmarks/renderer.py`: {cores * WORDS} words of {len(fonts)} fonts on {cores} cores, one process each:
**{rate:.0f} crops a second**.
""")


def draw(seed: int) -> None:
    """Draw some words."""
    renderer = Renderer(find_fonts(FONTS), Vocabulary())
    random = np.random.default_rng(seed)
    for _ in range(WORDS):
        renderer.draw(random)


if __name__ == "__main__":
    main()
