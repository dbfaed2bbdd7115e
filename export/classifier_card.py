"""`CARD.md` of a classifier."""

from export.card import added, trained_on
from export.evaluate_classifier import ClassifierFigures
from serving.manifest import ClassifierManifest


def classifier_card(
    manifest: ClassifierManifest, difference: float, figures: ClassifierFigures, comparison: str, notes: str
) -> str:
    """The card, every figure from the manifest or from what `readleaf evaluate` kept."""
    rows = "\n".join(f"| {name} | {value:g} |" for name, value in manifest.metrics.items())
    width, height = manifest.preprocessing.width, manifest.preprocessing.height
    return f"""# {manifest.name}, version {manifest.version}

{manifest.title}.

A picture becomes a probability for each of {len(manifest.labels)} classes, and a map of what speaks for each. It knows
these classes and nothing else: whatever is shown to it, it divides all belief among them. Below
{manifest.unsure_below:g} the service says that it is unsure.

**Input** `{manifest.inputs[0].name}`: uint8 RGB pixels [N, {height}, {width}, 3], the middle of the upright picture.
**Output** `probabilities`: float32 {_shape(manifest, 0)}, calibrated. `evidence`: float32 {_shape(manifest, 1)}: what
each place adds to a class's score beyond what it adds to all of them.

## Measured

By `readleaf evaluate classifier` on validation pictures. `ece` is the expected calibration error in 15 bins. The
temperature ({figures.temperature:g}) is fitted on the validation pictures; for the figures here each half of them is
scored with the temperature of the other half. "Answered" are pictures whose best probability reaches
{manifest.unsure_below:g}. "Prior shift" is the accuracy on sets that are drawn anew with skewed shares of the classes:
as it is, with weights estimated from the set without its labels, and with the true ones.

| metric | value |
|---|---|
{rows}

How often answers are right, by how sure they are, before and after calibration:

| probability | answers | mean | right | answers, calibrated | mean | right |
|---|---|---|---|---|---|---|
{_bins(figures)}

The exported graph differs from torch by at most {difference:.1e}.
{added(f"## Beside other losses{chr(10)}{chr(10)}{comparison}" if comparison else "")}
{trained_on(manifest)}

## Classes

{", ".join(manifest.labels)}
{added(notes)}"""


def _shape(manifest: ClassifierManifest, output: int) -> str:
    return f"[N, {', '.join(map(str, manifest.outputs[output].shape[1:]))}]"


def _bins(figures: ClassifierFigures) -> str:
    count = len(figures.before)
    lines = []
    for number, (before, after) in enumerate(zip(figures.before, figures.after, strict=True)):
        cells = [
            f"{each[0]:.0f} | {each[1]:.2f} | {each[2]:.2f}" if each[0] else "0 | – | –" for each in (before, after)
        ]
        if before[0] or after[0]:
            lines.append(f"| {number / count:.2f} – {(number + 1) / count:.2f} | {' | '.join(cells)} |")
    return "\n".join(lines)
