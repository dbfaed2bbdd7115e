"""The recogniser's language, from labels and lists of words to `language.npz`."""

from collections.abc import Sequence
from pathlib import Path

from serving.language import Language
from training.data.words import read_words
from training.language import CODE, OTHER, debian_lists, learn_language

ORDER = 4  # letters: a letter and three before it; 3 to 6 read equally well


def export_language(folders: Sequence[Path], file: Path, *, weight: float, bonus: float) -> Language:
    """Learn from the crops of the set `train` and from this machine's lists, and write `file`."""
    labels = [crop.text for folder in folders for crop in read_words(folder) if crop.set_name == "train"]
    learned = learn_language(labels, debian_lists(), ORDER)
    language = Language(
        learned.words,
        OTHER,
        CODE,
        learned.follows,
        learned.falls_back,
        ORDER,
        weight,
        bonus,
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    language.write(file)
    return language
