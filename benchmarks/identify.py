"""Names species by neighbours and by a soft-max layer on the same backbone, as the thesis compares them.

python benchmarks/identify.py ../shared/data/plants

Writes identify.md and identify.png.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from export.evaluate_identify import Sets, fused, look_at, shares
from training.metrics.classification import macro_f1

ROOT = Path(__file__).parents[1]
STEPS, BATCH = 1500, 256
RATES, SCALES = (1e-3, 1e-2), (10.0, 30.0)
Found = dict[str, NDArray[np.int64]]


def main() -> None:
    """Look at every picture once, then compare."""
    sets = look_at([Path(folder) for folder in sys.argv[1:]], ROOT / "models")
    truth = np.array([sets.classes.index(name) for name in sets.val.labels])
    votes, _ = shares(sets.val, sets)
    found: Found = {
        "1 nearest neighbour": shares(sets.val, sets, 1)[0].argmax(axis=1),
        "vote of 20 neighbours": votes.argmax(axis=1),
        "soft-max layer": soft_max(sets, truth),
        "classifier that ships": sets.val.posteriors.argmax(axis=1),
        "vote and classifier, as served": fused(votes, sets.val.posteriors).argmax(axis=1),
    }
    draw(found, truth, Path(__file__).with_suffix(".png"))
    Path(__file__).with_suffix(".md").write_text(report(found, truth, sets))


def soft_max(sets: Sets, truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """A linear layer learned by cross-entropy on the vectors of the training pictures; the best of a few settings."""
    vectors = torch.from_numpy(sets.train.vectors)
    labels = torch.tensor([sets.classes.index(name) for name in sets.train.labels])
    best: tuple[float, NDArray[np.int64]] = (-1.0, np.zeros(0, dtype=np.int64))
    for rate in RATES:
        for scale in SCALES:
            torch.manual_seed(0)
            layer = torch.nn.Linear(vectors.shape[1], len(sets.classes))
            optimizer = torch.optim.AdamW(layer.parameters(), lr=rate, weight_decay=1e-4)
            for _ in range(STEPS):
                chosen = torch.randint(len(vectors), (BATCH,))
                optimizer.zero_grad()
                F.cross_entropy(layer(scale * vectors[chosen]), labels[chosen]).backward()
                optimizer.step()
            with torch.no_grad():
                found = layer(scale * torch.from_numpy(sets.val.vectors)).argmax(dim=1).numpy()
            best = max(best, (float((found == truth).mean()), found), key=lambda each: each[0])
    return best[1]


def by_species(found: NDArray[np.int64], truth: NDArray[np.int64]) -> NDArray[np.float64]:
    """The accuracy of each species."""
    return np.array([(found[truth == name] == name).mean() for name in np.unique(truth)])


def draw(found: Found, truth: NDArray[np.int64], file: Path) -> None:
    """How many species are named how well, and the same as boxes."""
    species = {name: by_species(each, truth) for name, each in found.items()}
    figure, (counts, boxes) = plt.subplots(1, 2, figsize=(13, 4.5), layout="constrained")
    shown = ("vote of 20 neighbours", "soft-max layer")
    counts.hist([species[name] for name in shown], bins=np.linspace(0, 1, 11), label=shown)
    counts.set(xlabel="accuracy of a species", ylabel="species")
    counts.legend()
    boxes.boxplot(list(species.values()), orientation="horizontal", tick_labels=list(species), showmeans=True)
    boxes.set(xlabel="accuracy of a species (box: quartiles, line: median, mark: mean)")
    boxes.invert_yaxis()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def report(found: Found, truth: NDArray[np.int64], sets: Sets) -> str:
    """The table."""
    rows = ""
    for name, each in found.items():
        species = by_species(each, truth)
        rows += (
            f"| {name} | {(each == truth).mean():.3f} | {macro_f1(each, truth):.3f} | {np.median(species):.2f} "
            f"| {np.quantile(species, 0.25):.2f} | {(species == 0).sum()} |\n"
        )
    return f"""# Neighbours or a soft-max layer

`python benchmarks/identify.py`: {len(truth)} validation pictures of {len(np.unique(truth))} kinds of flowers and leaves
(`plants`), {len(sets.train.labels)} training pictures as the collection. The first three rows stand on the same
vectors, those of the embedder that ships: its nearest neighbours, their vote weighted by similarity as the service
counts it, and a linear layer learned by cross-entropy on the training pictures' vectors ({STEPS} steps, the best of
four settings on these same validation pictures). The classifier has a backbone of its own, tuned with ESupCon.

| | accuracy | macro-F1 | median of the species | lower quartile | species never right |
|---|---|---|---|---|---|
{rows}
![Accuracy by species, as a histogram and as box plots](identify.png)

Neighbours can be looked at, and take a new species without any training; that is why the service starts from them.
"""


if __name__ == "__main__":
    main()
