"""Reads word crops with Readleaf, RapidOCR and Tesseract in one run. Writes reading.md.

python benchmarks/reading.py ../shared/data/text_recognition
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from rapidocr import RapidOCR
from rapidocr.ch_ppocr_rec.typings import TextRecInput

from serving.images import ImageLimits
from serving.metrics import Metrics
from serving.pipelines.recognize import Recognizer
from serving.repository import load_repository, model_of
from serving.runtime.in_process import InProcessRuntime
from serving.timing import Timings
from training.data import vocabulary
from training.data.rendering import Renderer
from training.data.vocabulary import Vocabulary
from training.data.words import Pixels, WordCrop
from training.evaluate_recognizer import reading_figures, validation_crops
from training.metrics.edit_distance import score_readings
from training.models.recognizer import load_recognizer
from training.prepare_words import legible_on_this_machine

ROOT = Path(__file__).parents[1]
TIMED = 320  # crops
TESSERACT = 200  # crops: it is slow
SETS = ("icdar15", "iiit5k", "wordart", "all")
OURS, THEIRS = "Readleaf", "RapidOCR 3.10"
DRAWN = 300  # texts of each kind
RENDERED = {
    "numbers, prices, times": (vocabulary.number, vocabulary.price, vocabulary.moment),
    "codes": (vocabulary.code,),
    "any characters": (vocabulary.anything,),
    "words": (vocabulary.word,),
    "hosts and mailboxes": (vocabulary.address,),
}
Reader = Callable[[Sequence[Pixels]], list[str]]


def main() -> None:
    """Score all of them on all crops, time them on some."""
    crops = validation_crops([Path(sys.argv[1])])
    pixels = [crop.load() for crop in crops]
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        readers = {
            OURS: readleaf(workers),
            "Readleaf without its language": readleaf(workers, language=False),
            THEIRS: rapidocr(),
        }
        figures = {name: reading_figures(crops, in_batches(reader, pixels, 32)) for name, reader in readers.items()}
        drawn = score_rendered(readers)
        timed = {name: readers[name] for name in (OURS, THEIRS)}
        seconds = time_together(timed, pixels[:: max(1, len(pixels) // TIMED)][:TIMED])
    lines = [score_line(name, scores) for name, scores in figures.items()]
    if shutil.which("tesseract"):
        lines.append(score_tesseract(crops, pixels))
    ours, theirs = seconds[OURS], seconds[THEIRS]
    timing = "".join(
        f"| {batch} | {1000 * own:.1f} ms | {1000 * theirs[batch]:.1f} ms | {own / theirs[batch]:.2f} |\n"
        for batch, own in ours.items()
    )
    head = "".join(f" {name} acc | {name} TED |" for name in SETS)
    Path(__file__).with_suffix(".md").write_text(f"""# Reading words, beside others

`python benchmarks/reading.py`: {len(crops)} validation crops, accuracy and total edit distance on [0-9a-z].

| |{head}
|---|{"---|" * 2 * len(SETS)}
{"".join(lines)}
What is not a word must not be made one. Share of {DRAWN} rendered texts of each kind whose letters and digits are all
right (the words are of a list like those that the language knows):

{drawn}
Time for a crop, decoded pixels to text, in one run on {os.cpu_count()} cores ({TIMED} crops, median of 3 rounds,
taking turns):

| crops a call | Readleaf | RapidOCR | ratio |
|---|---|---|---|
{timing}""")


def readleaf(workers: ThreadPoolExecutor, *, language: bool = True) -> Reader:
    """The service's own pipeline and runtime."""
    model = model_of(load_repository(ROOT / "models"), "recognizer")
    if not language:
        model = replace(model, manifest=model.manifest.model_copy(update={"language": None}))
    network = InProcessRuntime("cpu", Metrics()).load(model)
    recognizer = Recognizer(network, model, ImageLimits(1 << 30, 1 << 30), workers)
    return lambda crops: [reading.text for reading in asyncio.run(recognizer.read(crops, Timings()))]


def rapidocr() -> Reader:
    """Its recogniser as it ships; it wants BGR."""
    recognizer = RapidOCR()._load_rec_model()

    def read(crops: Sequence[Pixels]) -> list[str]:
        return list(recognizer(TextRecInput(img=[np.ascontiguousarray(crop[:, :, ::-1]) for crop in crops])).txts)

    return read


def score_rendered(readers: dict[str, Reader]) -> str:
    """A table of readers and kinds of texts."""
    renderer = Renderer(legible_on_this_machine(load_recognizer("published")), Vocabulary())
    rows = {name: f"| {name} |" for name in readers}
    for kinds in RENDERED.values():
        random = np.random.default_rng(2026)
        texts, pixels = [], []
        while len(texts) < DRAWN:
            text = kinds[len(texts) % len(kinds)](renderer.vocabulary, random)
            font = renderer.fonts[int(random.integers(len(renderer.fonts)))]
            if font.can_write(text):
                texts.append(text)
                pixels.append(renderer.write(text, font, random))
        for name, reader in readers.items():
            scored = score_readings(in_batches(reader, pixels, 32), texts, alphanumeric=True)
            rows[name] += f" {scored.accuracy:.3f} |"
    return "\n".join([f"| | {' | '.join(RENDERED)} |", "|---" * (len(RENDERED) + 1) + "|", *rows.values(), ""])


def in_batches(reader: Reader, pixels: Sequence[Pixels], batch: int) -> list[str]:
    """All readings."""
    return [text for start in range(0, len(pixels), batch) for text in reader(pixels[start : start + batch])]


def time_together(readers: dict[str, Reader], pixels: Sequence[Pixels]) -> dict[str, dict[int, float]]:
    """Seconds a crop for each reader and batch size."""
    seconds: dict[str, dict[int, float]] = {name: {} for name in readers}
    for batch in (1, 32):
        rounds: dict[str, list[float]] = {name: [] for name in readers}
        for number in range(4):
            for name, reader in readers.items():
                started = time.perf_counter()
                in_batches(reader, pixels, batch)
                if number:  # the first warms up
                    rounds[name].append((time.perf_counter() - started) / len(pixels))
        for name, taken in rounds.items():
            seconds[name][batch] = sorted(taken)[len(taken) // 2]
    return seconds


def score_line(name: str, figures: dict[str, float]) -> str:
    """One row."""
    cells = "".join(
        f" {figures[f'{part}/accuracy']:.3f} | {figures[f'{part}/ted']:.0f} |"
        if f"{part}/ted" in figures
        else " – | – |"
        for part in SETS
    )
    return f"| {name} |{cells}\n"


def score_tesseract(crops: Sequence[WordCrop], pixels: Sequence[Pixels]) -> str:
    """Every few crops, one process each, as `--psm 8` reads a word."""
    step = max(1, len(crops) // TESSERACT)
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        for crop in pixels[::step]:
            file = Path(folder) / "crop.png"
            cv2.imwrite(str(file), cv2.cvtColor(crop, cv2.COLOR_RGB2BGR))
            run = subprocess.run(["tesseract", file, "-", "--psm", "8"], capture_output=True, text=True, check=False)
            texts.append(run.stdout.strip())
    return score_line(f"Tesseract, {len(texts)} of them", reading_figures(crops[::step], texts))


if __name__ == "__main__":
    main()
