"""LS-ED: a learned surrogate of the edit distance between two words."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor, nn

from training.alphabet import Alphabet
from training.metrics.edit_distance import edit_distances
from training.surrogates.pairs import Pair

SLOPE = 0.1  # of LeakyReLU below 0
REACH = 12  # how many places apart a letter and its match may lie


def by_offset(prediction: Tensor, truth: Tensor, reach: int = REACH) -> Pair:
    """Words as seen from the truth: distributions over letters [N, A, L] each → over offsets [N, 2·reach + 1, L] each.

    Entry (o, i) is the probability that letter i of a word equals letter i + o of the truth. The edit distance
    depends on nothing else, whatever the letters are, and an inserted letter only shifts those after it from one
    offset to the next. Letters themselves would not do: a word, two words that differ from it in one place each,
    and the word with both changes are 1 and 2 apart as no four points of Euclidean space are.
    """
    length = truth.shape[2]
    places = torch.arange(length, device=truth.device)
    offsets = torch.arange(2 * reach + 1, device=truth.device)

    def seen(words: Tensor) -> Tensor:
        equal = torch.einsum("naj,nai->nji", truth, words)  # [N, truth's place, word's place]
        padded = nn.functional.pad(equal, (0, 0, reach, reach))
        return padded[:, places + offsets[:, None], places.expand(len(offsets), length)]

    return seen(prediction), seen(truth)


class CharacterNetwork(nn.Module):
    """Char-CNN: five 1-D convolutions with LeakyReLU and two fully connected layers. [N, channels, L] → [N, 1024].

    channels are letters, or offsets in the frame of the truth.
    """

    def __init__(
        self, length: int, channels: int = 2 * REACH + 1, width: int = 64, hidden: int = 256, dimension: int = 1024
    ) -> None:
        super().__init__()
        sizes = [channels] + [width] * 5
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [nn.Conv1d(before, after, kernel_size=3, padding=1), nn.LeakyReLU(SLOPE)]
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Linear(width * length, hidden), nn.LeakyReLU(SLOPE), nn.Linear(hidden, dimension))
        for name, parameter in self.named_parameters():
            if name.endswith("weight"):
                nn.init.kaiming_normal_(parameter, a=SLOPE)
            else:
                nn.init.zeros_(parameter)

    def forward(self, words: Tensor) -> Tensor:
        """Embeddings of encoded words."""
        return self.head(self.features(words).flatten(1))


class EditDistance:
    """The exact metric on encoded words: both are decoded over `alphabet`, and the Levenshtein distance counted."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def __call__(self, prediction: Tensor, truth: Tensor) -> Tensor:
        """e of each pair: [N]."""
        distances = edit_distances(self.alphabet.decode(prediction), self.alphabet.decode(truth))
        return torch.from_numpy(distances).to(truth.dtype)


class WordDistorter:
    """Pairs of a word and a distorted one, uniform over edit distances 0 … `farthest`.

    Distorted words become distributions as a recogniser gives them: at each position up to `softness` (at most
    0.5) goes to other letters, and the most probable one stays what it was.
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
        self.words = [word for word in words if 0 < len(word) < length and set(word) <= set(alphabet.symbols)]
        if not self.words:
            raise ValueError(f"words holds none of 1 to {length - 1} characters from the alphabet")
        if not 0 < farthest < length:
            raise ValueError(f"farthest must be 1 to {length - 1}, not {farthest}")
        if not 0 <= softness <= 0.5:
            raise ValueError(f"softness must be 0 to 0.5, not {softness}")
        self.alphabet, self.length, self.batch = alphabet, length, batch
        self.farthest, self.softness = farthest, softness
        self.random = np.random.default_rng(seed)

    def __call__(self) -> Pair:
        """Encoded (distorted, true) words: [batch, symbols + 1, length] each."""
        wanted = self.random.integers(0, self.farthest + 1, size=self.batch)
        pairs = [self._pair(int(distance)) for distance in wanted]
        distorted = self.alphabet.encode([pair[0] for pair in pairs], self.length)
        truth = self.alphabet.encode([pair[1] for pair in pairs], self.length)
        return self.alphabet.close(self._soften(distorted)), truth

    def _pair(self, distance: int) -> tuple[str, str]:
        """A word and another at exactly this distance."""
        while True:
            truth = distorted = self.words[self.random.integers(len(self.words))]
            # Edits may undo one another: more are allowed than the distance asks for, then another word is taken.
            for _ in range(2 * distance + 1):
                if Levenshtein.distance(distorted, truth) == distance:
                    return distorted, truth
                distorted = self._edit(distorted)

    def _edit(self, word: str) -> str:
        """One insertion, deletion or substitution that the length allows."""
        kinds = ["substitute", "delete"] * bool(word) + ["insert"] * (len(word) < self.length - 1)
        kind = kinds[self.random.integers(len(kinds))]
        place = int(self.random.integers(len(word) + (kind == "insert")))
        letter = self.alphabet.symbols[self.random.integers(len(self.alphabet.symbols))]
        return word[:place] + letter * (kind != "delete") + word[place + (kind != "insert") :]

    def _soften(self, words: Tensor) -> Tensor:
        # High powers: a recogniser doubts few letters, and those between few others.
        share = torch.from_numpy(self.random.uniform(size=(len(words), 1, self.length)) ** 4) * self.softness
        doubt = torch.from_numpy(self.random.uniform(size=tuple(words.shape)) ** 8)
        softened = (1 - share) * words + share * doubt / doubt.sum(dim=1, keepdim=True)
        return softened.to(words.dtype)
