"""`CARD.md`: what a model is, what it was measured to do, what it is bad at."""

from serving.manifest import Manifest


def embedder_card(manifest: Manifest, difference: float) -> str:
    """The embedder's card, every figure from its manifest."""
    rows = "\n".join(f"| {name} | {value:.3f} |" for name, value in manifest.metrics.items())
    assert manifest.similarity is not None
    different, same = manifest.similarity.different, manifest.similarity.same
    width, height = manifest.preprocessing.width, manifest.preprocessing.height
    return f"""# {manifest.name}, version {manifest.version}

{manifest.title}.

A picture becomes a vector of {manifest.dim} numbers and length 1. Pictures that look alike have vectors that
point the same way, so their product (the cosine) says how alike they are.

**Input** `{manifest.inputs[0].name}`: uint8 RGB pixels [N, {height}, {width}, 3], the middle of the upright picture.
**Output** `{manifest.outputs[0].name}`: float32 [N, {manifest.dim}].

## Measured

By `readleaf evaluate embedder` on {manifest.similarity.measured_on}.
r@k is the share of pictures that have one of their own class among their k nearest others. ImageNet itself has
pictures of some of these birds and flowers, under broader names.

| metric | value |
|---|---|
{rows}

Cosine similarity over all pairs of these pictures:

| pairs | 5 % below | half below | 95 % below |
|---|---|---|---|
| of different classes | {different[5]:.2f} | {different[50]:.2f} | {different[95]:.2f} |
| of the same class | {same[5]:.2f} | {same[50]:.2f} | {same[95]:.2f} |

The exported graph differs from torch by at most {difference:.1e}.

## Trained on

{"; ".join(manifest.training_data)}. No further training: these are general features.

Licence of this model: {manifest.licence}, as the weights' package states; ImageNet's pictures have terms of
their own.

## What it is bad at

- Kinds that differ in small parts: birds do worse than flowers in the table above.
- Text, diagrams and drawings: it was trained on photographs.
- A small subject in a wide scene: the whole middle of the picture counts. Crop first.
- All similarities are positive and most lie in a narrow band, so compare them with the table above,
  not with 0 or 1.
"""
