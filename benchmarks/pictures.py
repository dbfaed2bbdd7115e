"""Reads whole photographs with Readleaf, RapidOCR and Tesseract in one run. Writes pictures.md.

python benchmarks/pictures.py ../shared/data/text_detection
"""

import asyncio
import csv
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
from rapidocr import RapidOCR

from serving.images import ImageLimits
from serving.metrics import Metrics
from serving.pipelines.detect import Detector
from serving.pipelines.read import Reader
from serving.pipelines.recognize import Recognizer
from serving.repository import load_repository
from serving.runtime.in_process import InProcessRuntime
from serving.timing import Timings
from training.data.words import Pixels
from training.evaluate_detector import ReadWords, Tally, TurnedScene, judge, turned, validation_scenes

ROOT = Path(__file__).parents[1]
OURS, THEIRS = "Readleaf", "RapidOCR 3.10, lines cut at spaces"
Reads = Callable[[Pixels], ReadWords]


def main() -> None:
    """Each picture is read by all, one after the other."""
    scenes = [turned(scene, 0) for scene in validation_scenes([Path(sys.argv[1])])]
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        readers: dict[str, Reads] = {OURS: readleaf(workers), THEIRS: rapidocr()}
        if shutil.which("tesseract"):
            readers["Tesseract 5, `--psm 11`"] = tesseract
        tallies, seconds = read_all(readers, scenes)
    median = {name: sorted(taken)[len(taken) // 2] for name, taken in seconds.items()}
    rows = "".join(line(name, tallies[name], median[name], median[THEIRS]) for name in readers)
    Path(__file__).with_suffix(".md").write_text(f"""# Reading whole photographs, beside others

`python benchmarks/pictures.py`: {len(scenes)} validation photographs of ICDAR'15, 1280×720, words by its protocol. Each
picture is read by all in turn, on {os.cpu_count()} cores; time is the median of a picture, decoded pixels to text.

| | precision | recall | F1 | end to end F1 | time | ratio to RapidOCR |
|---|---|---|---|---|---|---|
{rows}""")


def read_all(
    readers: dict[str, Reads], scenes: Sequence[TurnedScene]
) -> tuple[dict[str, Tally], dict[str, list[float]]]:
    """Figures and seconds of each reader."""
    tallies = {name: Tally() for name in readers}
    seconds: dict[str, list[float]] = {name: [] for name in readers}
    for reader in readers.values():
        reader(scenes[0].pixels)  # warms up
    for scene in scenes:
        for name, reader in readers.items():
            started = time.perf_counter()
            words = reader(scene.pixels)
            seconds[name].append(time.perf_counter() - started)
            tallies[name] += judge(scene, words)
    return tallies, seconds


def line(name: str, tally: Tally, seconds: float, theirs: float) -> str:
    """One row."""
    found = tally.found
    figures = (found.precision, found.recall, found.f1, tally.read.f1)
    cells = " | ".join(f"{figure:.3f}" for figure in figures)
    return f"| {name} | {cells} | {1000 * seconds:.0f} ms | {seconds / theirs:.2f} |\n"


def readleaf(workers: ThreadPoolExecutor) -> Reads:
    """The service's own pipeline and runtime."""
    models, runtime = load_repository(ROOT / "models"), InProcessRuntime("cpu", Metrics())
    finds, reads, limits = models["detector"], models["recognizer"], ImageLimits(1 << 30, 1 << 30)
    recognizer = Recognizer(runtime.load(reads), reads, limits, workers)
    reader = Reader(Detector(runtime.load(finds), finds), recognizer, limits, workers)

    def read(picture: Pixels) -> ReadWords:
        page = asyncio.run(reader.read(picture, Timings()))
        quads = np.array([word.polygon for word in page.words]).reshape(-1, 4, 2)
        return ReadWords(quads, [word.text for word in page.words])

    return read


def rapidocr() -> Reads:
    """As it ships; its lines are cut at spaces, each word as long as its share of the characters."""
    engine = RapidOCR()

    def read(picture: Pixels) -> ReadWords:
        answer = engine(np.ascontiguousarray(picture[:, :, ::-1]))  # it wants BGR
        quads, texts = [], []
        for corners, text in zip(answer.boxes if answer.boxes is not None else (), answer.txts or (), strict=True):
            for start, word in words_of(text):
                shares = np.array([start, start + len(word)]) / len(text)
                top = [corners[0] + share * (corners[1] - corners[0]) for share in shares]
                bottom = [corners[3] + share * (corners[2] - corners[3]) for share in shares]
                quads.append([top[0], top[1], bottom[1], bottom[0]])
                texts.append(word)
        return ReadWords(np.array(quads, dtype=np.float64).reshape(-1, 4, 2), texts)

    return read


def words_of(text: str) -> list[tuple[int, str]]:
    """Words of a line and where they start."""
    found, start = [], 0
    for word in text.split(" "):
        if word:
            found.append((start, word))
        start += len(word) + 1
    return found


def tesseract(picture: Pixels) -> ReadWords:
    """Sparse text, one process a picture."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "picture.png"
        cv2.imwrite(str(file), cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
        command = ["tesseract", file, "-", "--psm", "11", "tsv"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    quads, texts = [], []
    for row in csv.DictReader(io.StringIO(run.stdout), delimiter="\t", quoting=csv.QUOTE_NONE):
        if row["text"].strip():
            left, top, width, height = (float(row[key]) for key in ("left", "top", "width", "height"))
            quads.append([(left, top), (left + width, top), (left + width, top + height), (left, top + height)])
            texts.append(row["text"].strip())
    return ReadWords(np.array(quads, dtype=np.float64).reshape(-1, 4, 2), texts)


if __name__ == "__main__":
    main()
