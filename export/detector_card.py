"""The detector's `CARD.md`."""

from export.card import added, trained_on
from serving.manifest import DetectorManifest


def detector_card(manifest: DetectorManifest, difference: float, comparison: str, notes: str) -> str:
    """Every figure from its manifest or from the comparison that was run."""
    rows = "\n".join(f"| {name} | {value:g} |" for name, value in manifest.metrics.items())
    stride = manifest.stride
    return f"""# {manifest.name}, version {manifest.version}

{manifest.title}.

A picture becomes the places of its words: rotated boxes, each with the direction in which it is read.

**Input** `{manifest.inputs[0].name}`: uint8 RGB pixels [N, height, width, 3], both sides multiples of
{manifest.multiple}; what is missing is filled up with black on the right and below.
**Output** `{manifest.outputs[0].name}`: float32 [N, height / {stride}, width / {stride}, 7]: for each cell how surely
it is the heart of a word, and that word's box (cx, cy, w, h, cos, sin) in pixels, y downwards.

The service gathers cells of {manifest.thresholds.heart:g} and more that mean the same word, and keeps words of
{manifest.thresholds.word:g} and more. Large pictures are looked at in tiles, and once more shrunk to a quarter.

## Measured

By `readleaf evaluate detector` on validation photographs, by the ICDAR'15 protocol: a word is found if a box has an
IoU above one half with it; words that nobody cares for are left out. "Detection" is the detector alone; "reading" is
what the service answers with it and the recogniser: words that could be read. End to end a word must also be read
right, compared case-insensitively on [0-9a-z]. "Turned by" are the same photographs turned on a canvas that grows with
them. Of all steps of the training the best by F1 is kept, and both thresholds are chosen on these same photographs.

| metric | value |
|---|---|
{rows}

The exported graph differs from torch by at most {difference:.1e} in scores and in parts of a word's size.
{added(f"## Losses side by side{chr(10)}{chr(10)}{comparison}" if comparison else "")}
{trained_on(manifest)}
{added(notes)}"""
