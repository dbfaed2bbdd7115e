"""Words as tensors: one distribution over characters for each position."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

ALPHANUMERIC = "0123456789abcdefghijklmnopqrstuvwxyz"
PRINTABLE = "".join(map(chr, range(ord("!"), ord("~") + 1)))  # ASCII without the space: a word has none


@dataclass(frozen=True)
class Alphabet:
    """Characters a word may hold, and one sign more for its end: class len(symbols).

    A word of n characters takes positions 0 … n − 1; position n and all after it hold the end sign with certainty,
    in truths (`encode`) and in predictions (`close`) alike.
    """

    symbols: str = ALPHANUMERIC

    def __post_init__(self) -> None:
        if not self.symbols or len(set(self.symbols)) != len(self.symbols):
            raise ValueError(f"symbols must be different characters and not none: {self.symbols!r}")

    @property
    def end(self) -> int:
        """The class of the end sign."""
        return len(self.symbols)

    def indices(self, words: Sequence[str], length: int) -> Tensor:
        """Classes of each position: [N, length], filled up with the end sign."""
        place = {symbol: index for index, symbol in enumerate(self.symbols)}
        result = torch.full((len(words), length), self.end, dtype=torch.int64)
        for row, word in enumerate(words):
            if len(word) >= length:
                raise ValueError(
                    f"word {word!r} has {len(word)} characters; length {length} leaves room for {length - 1}"
                )
            try:
                result[row, : len(word)] = torch.tensor([place[character] for character in word], dtype=torch.int64)
            except KeyError as error:
                raise ValueError(f"word {word!r} holds {error.args[0]!r}, which is not in the alphabet") from None
        return result

    def encode(self, words: Sequence[str], length: int) -> Tensor:
        """One-hot words: [N, symbols + 1, length]."""
        classes = self.indices(words, length)
        return torch.zeros(len(words), self.end + 1, length).scatter_(1, classes.unsqueeze(1), 1.0)

    def decode(self, distributions: Tensor) -> list[str]:
        """The most probable character of each position up to the first end sign; distributions [N, symbols + 1, L]."""
        symbols = self.symbols + "\0"
        best = distributions.argmax(dim=1).tolist()  # [N][L]
        return ["".join(symbols[index] for index in row).split("\0", 1)[0] for row in best]

    def close(self, distributions: Tensor) -> Tensor:
        """Predictions with the end sign for certain after the first position where it is the most probable.

        That first position keeps its distribution, so that a gradient can lengthen a word.
        """
        is_end = distributions.argmax(dim=1) == self.end  # [N, L]
        past = is_end.cumsum(dim=1) - is_end.long() > 0  # an end sign came before
        sign = torch.zeros_like(distributions[:1, :, :1])
        sign[:, self.end] = 1.0
        return torch.where(past.unsqueeze(1), sign, distributions)
