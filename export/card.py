"""`CARD.md`: what a model is, what it was measured to do, what it is bad at."""

from serving.manifest import EmbedderManifest, Manifest, RecognizerManifest

# Of the sets that our models were trained on, as their publishers state it.
LICENCES = {
    "ImageNet-1k": "terms of its own",
    "flowers102": "a research benchmark, no licence stated",
    "cub200": "a research benchmark, no licence stated",
    "plantdoc": "CC BY 4.0",
    "grocery": "MIT",
    "icdar15": "CC BY 4.0, second hand",
    "iiit5k": "a research benchmark, no licence stated",
    "wordart": "a research benchmark, no licence stated",
    "PP-OCRv6 small": "weights by PaddlePaddle",
    "rendered words": "drawn by our own renderer",
    "drawn scenes": "drawn by our own renderer, on parts of photographs that are named here",
    "lists of English words": "SCOWL by Kevin Atkinson, free for any use with its notice",
}


def embedder_card(manifest: EmbedderManifest, difference: float, comparison: str, notes: str) -> str:
    """The embedder's card, every figure from its manifest or from the comparison that `readleaf evaluate` wrote.

    `notes` is what people found who looked at it, in Markdown.
    """
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

By `readleaf evaluate embedder`. r@k is the share of pictures of classes never trained on that have one of their own
class among their k nearest others; 1-nn the share of validation pictures of known classes whose nearest training
picture is of their class. Of all steps of the training, the best by r@1 is the one kept.

| metric | value |
|---|---|
{rows}

Cosine similarity over all pairs of {manifest.similarity.measured_on}:

| pairs | 5 % below | half below | 95 % below |
|---|---|---|---|
| of different classes | {different[5]:.2f} | {different[50]:.2f} | {different[95]:.2f} |
| of the same class | {same[5]:.2f} | {same[50]:.2f} | {same[95]:.2f} |

{_rejection(manifest)}
The exported graph differs from torch by at most {difference:.1e}.
{added(f"## Beside other losses{chr(10)}{chr(10)}{comparison}" if comparison else "")}
{trained_on(manifest)}
{added(notes)}"""


def recognizer_card(manifest: RecognizerManifest, difference: float, comparison: str, notes: str) -> str:
    """The recogniser's card, every figure from its manifest or from the comparison that `readleaf evaluate` wrote."""
    rows = "\n".join(f"| {name} | {value:g} |" for name, value in manifest.metrics.items())
    canvas = manifest.canvas
    return f"""# {manifest.name}, version {manifest.version}

{manifest.title}.

A crop of one word becomes its text: {len(manifest.symbols)} printable ASCII characters, no spaces, no other scripts.

**Input** `{manifest.inputs[0].name}`: uint8 RGB pixels [N, {canvas.height}, width, 3]: the crop scaled to the height
and filled up with grey on the right to a width of {canvas.width}, or as many steps of {canvas.step} more as it needs,
up to {canvas.longest}.
**Output** `classes` and `probabilities`, [N, width / 8, {manifest.outputs[0].shape[2]}]: at each place the most
probable characters, the best first; {len(manifest.symbols)} stands for no character.
{_language(manifest)}
A crop more than {canvas.tall:g} times as high as wide is also read on either side, and such a reading taken if it is
surer by {canvas.surer_by:g}.

## Measured

By `readleaf evaluate recognizer` on validation crops: the share of words without a mistake, the mean of 1 − distance /
length (ned), and the total edit distance (ted). Compared case-insensitively on [0-9a-z], as the thesis does;
"printable" compares all characters as they stand. `ece` is the calibration error of the word's confidence.
"Letter by letter" is the best answer at each place, nothing searched.

| metric | value |
|---|---|
{rows}

The exported graph differs from torch by at most {difference:.1e}, and reads the same words.
{added(f"## Step by step{chr(10)}{chr(10)}{comparison}" if comparison else "")}
{trained_on(manifest)}
{added(notes)}"""


def _language(manifest: RecognizerManifest) -> str:
    if manifest.language is None:
        return ""
    return """
The service follows the most probable words through these answers and weighs them with `language.npz`: words of the
training labels and of lists of English words, and which letters follow one another. Where the picture is clear, the
picture decides; the language speaks where it is not.
"""


def trained_on(manifest: Manifest) -> str:
    """What a model was learned from, and under which licence it is."""
    known = (
        (entry, LICENCES.get(entry.partition(":")[0], "licence not known to us")) for entry in manifest.training_data
    )
    data = "\n".join(f"- {entry} ({licence})" for entry, licence in known)
    return f"""## Trained on

{data}

Licence of this model: {manifest.licence}. None of the pictures is part of it."""


def _rejection(manifest: EmbedderManifest) -> str:
    assert manifest.similarity is not None
    if manifest.similarity.reject_below is None:
        return ""
    threshold = f"{manifest.similarity.reject_below:.2f}"
    return f"""A picture whose nearest neighbour is less alike than {threshold} is called none of the known. 19 of 20
pictures of unseen classes are named when their class is in the collection (`named`, by source); the share that is
rightly refused when it is not is `strangers refused`.
"""


def added(section: str) -> str:
    """A section, if there is one."""
    return f"\n{section}" if section else ""
