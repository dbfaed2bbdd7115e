"""How well the learned surrogates know their metrics, with and without the truth's frame. Writes surrogates.md.

python benchmarks/surrogates.py WORDS.txt     (one word a line; without it the words of Python's own manual)
"""

import pydoc_data.topics
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from training.alphabet import Alphabet
from training.surrogates.edit_distance import CharacterNetwork, EditDistance, WordDistorter, by_offset
from training.surrogates.learning import Surrogate, learn
from training.surrogates.pairs import Pair, Sources
from training.surrogates.quality import EDIT_DISTANCE_EDGES, OVERLAP_EDGES, measure
from training.surrogates.rotated_iou import BoxDistorter, BoxNetwork, in_frame_of_truth, one_minus_iou

LENGTH = 26
GRADIENT_WEIGHT = 0.01


def main() -> None:
    """Learn each surrogate both ways and write the errors on pairs held back."""
    text = Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else " ".join(pydoc_data.topics.topics.values())
    words = sorted({word for word in re.findall("[a-z0-9]+", text.lower()) if 3 <= len(word) <= 16})
    np.random.default_rng(5).shuffle(words)
    alphabet = Alphabet()
    metric = EditDistance(alphabet)
    held_back = WordDistorter(words[:500], alphabet, length=LENGTH, batch=2000, seed=2)()

    def new_words() -> WordDistorter:
        return WordDistorter(words[500:], alphabet, length=LENGTH, seed=1)

    torch.manual_seed(0)
    letters = Surrogate(CharacterNetwork(LENGTH, channels=alphabet.end + 1), metric)
    torch.manual_seed(0)
    offsets = Surrogate(CharacterNetwork(LENGTH), metric, by_offset)
    edit_rows = [
        row("letters", letters, new_words(), held_back, 2000, EDIT_DISTANCE_EDGES),
        row("offsets from the truth", offsets, new_words(), held_back, 2000, EDIT_DISTANCE_EDGES),
    ]
    far = BoxDistorter(word_boxes(500, seed=1), pool=5000, seed=2)
    torch.manual_seed(0)
    boxes = Surrogate(BoxNetwork(), one_minus_iou, in_frame_of_truth)
    box_rows = [
        row(
            "the truth's frame",
            boxes,
            BoxDistorter(word_boxes(5000, seed=3), seed=4),
            (far.prediction, far.truth),
            1500,
            OVERLAP_EDGES,
        )
    ]
    document = [
        "# Learned surrogates",
        "",
        "|ê − e| on pairs held back, by the value of the metric; the mean has no weights. `make bench`, two threads.",
        "",
        f"## Edit distance: {len(words) - 500:,} words to learn from, 500 others to measure on, distances 0 to 8",
        "",
        "| h sees | 0 | 1 | 2 | 3 | 4 and more | mean | seconds |",
        "|---|---|---|---|---|---|---|---|",
        *edit_rows,
        "",
        "## 1 − IoU of rotated boxes, in tenths",
        "",
        "| h sees | " + " | ".join(f"{place / 10:.1f}" for place in range(10)) + " | mean | seconds |",
        "|---" * 13 + "|",
        *box_rows,
    ]
    Path(__file__).with_suffix(".md").write_text("\n".join(document) + "\n")


def row(
    name: str, surrogate: Surrogate, generator: Callable[[], Pair], held_back: Pair, steps: int, edges: Sequence[float]
) -> str:
    """Learn, measure, and say it in one row."""
    started = time.perf_counter()
    for entry in learn(surrogate, Sources(generator), steps=steps, gradient_weight=GRADIENT_WEIGHT):
        print(f"{name}: {entry.steps} steps, error {entry.error:.3f}", flush=True)
    seconds = time.perf_counter() - started
    quality = measure(surrogate, *held_back, edges)
    errors = " | ".join(f"{error:.3f}" for error in (*quality.by_bin, quality.mean))
    return f"| {name} | {errors} | {seconds:.0f} |"


def word_boxes(count: int, seed: int) -> NDArray[np.float64]:
    """Boxes like words in a picture of size 1: of every size, mostly lying, some steep."""
    random = np.random.default_rng(seed)
    height = np.exp(random.uniform(np.log(0.01), np.log(0.08), count))
    aspect = np.exp(random.uniform(np.log(0.5), np.log(8), count))
    return np.stack([*random.uniform(0, 1, (2, count)), height * aspect, height, random.normal(0, 40, count)], axis=1)


if __name__ == "__main__":
    main()
