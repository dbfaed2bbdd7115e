"""Puts what `readleaf evaluate identify` measured into the embedder's manifest and card."""

import re
from pathlib import Path

from export.evaluate_identify import IdentifyFigures
from serving.manifest import EmbedderManifest
from serving.repository import load_repository, manifest_as, model_of

PREFIX = "identify/"
SECTION = re.compile(r"\n## Naming species\n.*?(?=\n## |\Z)", re.DOTALL)


def keep_figures(figures: IdentifyFigures, models: Path) -> EmbedderManifest:
    """Write them; figures of an earlier run are replaced."""
    folder = model_of(load_repository(models), "embedder").folder
    manifest = manifest_as(model_of(load_repository(models), "embedder"), EmbedderManifest)
    others = {name: value for name, value in manifest.metrics.items() if not name.startswith(PREFIX)}
    measured = {f"{PREFIX}{name}": value for name, value in figures.metrics.items()}
    similarity = manifest.similarity and manifest.similarity.model_copy(update={"familiar_from": figures.familiar_from})
    changed = manifest.model_copy(update={"metrics": others | measured, "similarity": similarity})
    changed.write(folder)
    card = folder / "CARD.md"
    text = SECTION.sub("", card.read_text())
    before, mark, after = text.partition("\n## Trained on")
    card.write_text(f"{before.rstrip()}\n{section(figures)}{mark}{after}")
    return changed


def section(figures: IdentifyFigures) -> str:
    """The part of the card that tells of them."""
    rows = "\n".join(f"| {name} | {value:.3f} |" for name, value in figures.metrics.items())
    return f"""
## Naming species

By `readleaf evaluate identify`: training pictures are the collection, validation pictures of the same kinds are asked
about, and pictures of kinds never trained on must be refused. "Neighbours" is the vote of the 20 nearest, "both" with
the classifier's calibrated probabilities at equal parts; "3 pictures" are three of one kind taken for one organism. An
organism is familiar if it is as close to its neighbours as these are to theirs; below {figures.familiar_from} the
service calls it none of the known, which keeps 19 of 20 that are known. "Nearest alone" is the same by the similarity
of the nearest neighbour. Weights and threshold were chosen on these same pictures.

| metric | value |
|---|---|
{rows}
"""
