"""LS-ED for CTC: the edit distance of two words that are written into the columns of a line.

CTC answers once a column, and most answers are "no character" (the blank). Prediction and truth become comparable when
the truth is written into the same columns: along its most probable path under the prediction itself (`align`). They
then differ only where the prediction is wrong, and a letter that was missed has a place, so a gradient can write it.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from training.alphabet import Alphabet
from training.metrics.edit_distance import edit_distances
from training.surrogates.pairs import Pair

REACH = 3  # how many columns apart a letter and its match may lie
CHANNELS = 2 * REACH + 3
IMPOSSIBLE = -1e9


def align(scores: Tensor, words: Sequence[str], alphabet: Alphabet) -> Tensor:
    """The most probable path of each word under scores [N, T, symbols + 1] (log-probabilities): classes [N, T].

    The blank is the alphabet's end sign. A word that does not fit into T columns is cut short.
    """
    count, length, _ = scores.shape
    blank = alphabet.end
    shorter = [_that_fits(word, length) for word in words]
    longest = max(map(len, shorter), default=0)
    targets = torch.full((count, 2 * longest + 1), blank)  # blank, letter, blank, letter, … blank
    for row, word in enumerate(shorter):
        targets[row, 1 : 2 * len(word) : 2] = alphabet.indices([word], len(word) + 1)[0, :-1]
    ends = torch.tensor([2 * len(word) for word in shorter])
    # A state may be reached from itself, from the one before, or over a blank from a letter that differs.
    jumps = torch.zeros_like(targets, dtype=torch.bool)
    jumps[:, 3::2] = targets[:, 3::2] != targets[:, 1:-2:2]
    own = scores.detach().cpu().gather(2, targets[:, None, :].expand(-1, length, -1))  # [N, T, states]
    best = torch.full((count, targets.shape[1]), IMPOSSIBLE)
    best[:, :2] = own[:, 0, :2]
    steps = []
    for column in range(1, length):
        before = torch.stack([best, _shifted(best, 1), _shifted(best, 2).masked_fill(~jumps, IMPOSSIBLE)])
        best, step = before.max(dim=0)
        best = best + own[:, column]
        steps.append(step)
    rows = torch.arange(count)
    last = torch.where(best[rows, (ends - 1).clamp(min=0)] > best[rows, ends], (ends - 1).clamp(min=0), ends)
    states = [last]
    for step in reversed(steps):
        states.append(states[-1] - step[rows, states[-1]])
    path = torch.stack(states[::-1], dim=1)  # [N, T]
    return targets.gather(1, path)


def _shifted(values: Tensor, places: int) -> Tensor:
    return torch.nn.functional.pad(values, (places, 0), value=IMPOSSIBLE)[:, : values.shape[1]]


def _that_fits(word: str, length: int) -> str:
    """The part of a word that `length` columns can hold: one a letter, and a blank between equal ones."""
    used = 0
    for place, letter in enumerate(word):
        used += 1 + (place > 0 and word[place - 1] == letter)
        if used > length:
            return word[:place]
    return word


def as_distributions(path: Tensor, classes: int) -> Tensor:
    """Classes [N, T] → one-hot [N, classes, T]."""
    return torch.nn.functional.one_hot(path, classes).transpose(1, 2).float()


def fill_up(distributions: Tensor, length: int) -> Tensor:
    """Columns of certain blanks after the last, up to `length`: [N, classes, T] → [N, classes, length]."""
    missing = length - distributions.shape[2]
    blanks = torch.zeros_like(distributions[:, :, :1]).expand(-1, -1, missing).clone()
    blanks[:, -1] = 1.0
    return torch.cat([distributions, blanks], dim=2)


def collapse(distributions: Tensor, alphabet: Alphabet) -> list[str]:
    """Words of distributions [N, symbols + 1, T]: equal neighbours are one letter, blanks none."""
    words = []
    for row in distributions.argmax(dim=1).cpu().numpy():
        starts = np.concatenate([[True], row[1:] != row[:-1]]) & (row != alphabet.end)
        words.append("".join(alphabet.symbols[number] for number in row[starts]))
    return words


class PathDistance:
    """The exact metric: both are collapsed to words over `alphabet`, and the Levenshtein distance counted."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def __call__(self, prediction: Tensor, truth: Tensor) -> Tensor:
        """e of each pair: [N]."""
        distances = edit_distances(collapse(prediction, self.alphabet), collapse(truth, self.alphabet))
        return torch.from_numpy(distances).to(truth.dtype)


def by_column(prediction: Tensor, truth: Tensor) -> Pair:
    """Paths as seen from the truth: [N, symbols + 1, T] each → [N, 9, T] each.

    For each column: how probably its letter is the truth's letter three columns before … three columns after, how
    probably it is blank, and how probably it repeats the letter of the column before. The edit distance depends on
    nothing else but letters that are equal to one another and to none of the truth.
    """
    letters = truth[:, :-1]

    def seen(paths: Tensor) -> Tensor:
        own = paths[:, :-1]
        padded = torch.nn.functional.pad(letters, (REACH, REACH))
        length = own.shape[2]
        equal = [(own * padded[:, :, offset : offset + length]).sum(dim=1) for offset in range(2 * REACH + 1)]
        repeated = torch.nn.functional.pad((own[:, :, 1:] * own[:, :, :-1]).sum(dim=1), (1, 0))
        return torch.stack([*equal, paths[:, -1], repeated], dim=1)

    return seen(prediction), seen(truth)


class PathDistorter:
    """Pairs of a distorted path and a true one, with 0 … `farthest` edits, as a recogniser's answers look.

    Letters are changed, blanked out or added; runs of a letter get longer, which changes no word; then each column
    doubts a little. The distance that results is counted exactly, whatever the edits did to one another.
    """

    def __init__(
        self,
        words: Sequence[str],
        alphabet: Alphabet,
        *,
        length: int,
        batch: int = 64,
        farthest: int = 8,
        softness: float = 0.5,
        seed: int = 0,
    ) -> None:
        self.words = [word for word in words if word and set(word) <= set(alphabet.symbols) and 2 * len(word) < length]
        if not self.words:
            raise ValueError(f"words holds none from the alphabet that {length} columns can hold twice")
        self.alphabet, self.length, self.batch = alphabet, length, batch
        self.farthest, self.softness = farthest, softness
        self.random = np.random.default_rng(seed)

    def __call__(self) -> Pair:
        """Encoded (distorted, true) paths: [batch, symbols + 1, length] each."""
        pairs = [self._pair() for _ in range(self.batch)]
        distorted, truth = (torch.from_numpy(np.stack(side)) for side in zip(*pairs, strict=True))
        classes = self.alphabet.end + 1
        return self._soften(as_distributions(distorted, classes)), as_distributions(truth, classes)

    def _pair(self) -> tuple[np.ndarray, np.ndarray]:
        random, blank = self.random, self.alphabet.end
        word = self.words[random.integers(len(self.words))]
        truth = np.full(self.length, blank)
        # Two columns a letter on the average, as words have them; every second column can be a letter's.
        room = min(self.length // 2, len(word) + int(random.integers(0, len(word) + 1)))
        places = np.sort(random.choice(room, size=len(word), replace=False)) * 2 + int(random.integers(0, 2))
        truth[places] = self.alphabet.indices([word], len(word) + 1)[0, :-1].numpy()
        distorted = truth.copy()
        for _ in range(random.integers(0, self.farthest + 1)):
            self._edit(distorted)
        for path in (truth, distorted):
            self._lengthen(path)
        return distorted, truth

    def _edit(self, path: np.ndarray) -> None:
        """Change, blank out or add one letter."""
        blank = self.alphabet.end
        kind = self.random.integers(3)
        places = np.flatnonzero(path == blank if kind == 2 else path != blank)
        if not len(places):
            return
        # Most letters are added within the word, not far to its right.
        written = np.flatnonzero(path != blank)
        if kind == 2 and len(written):
            near = places[places <= written[-1] + 2]
            places = near if len(near) else places
        place = places[self.random.integers(len(places))]
        path[place] = blank if kind == 1 else self.random.integers(blank)

    def _lengthen(self, path: np.ndarray) -> None:
        """Let some letters last a column longer where a blank follows."""
        blank = self.alphabet.end
        for place in np.flatnonzero((path[:-2] != blank) & (path[1:-1] == blank)):
            if self.random.uniform() < 0.3 and path[place + 2] != path[place]:
                path[place + 1] = path[place]

    def _soften(self, paths: Tensor) -> Tensor:
        """Doubt in few columns, and there between few answers, mostly the blank."""
        share = torch.from_numpy(self.random.uniform(size=(len(paths), 1, self.length)) ** 4) * self.softness
        doubt = torch.from_numpy(self.random.uniform(size=tuple(paths.shape)) ** 8)
        doubt[:, -1] += torch.from_numpy(self.random.uniform(size=(len(paths), self.length)) * 4)
        softened = (1 - share) * paths + share * doubt / doubt.sum(dim=1, keepdim=True)
        return softened.to(paths.dtype)
