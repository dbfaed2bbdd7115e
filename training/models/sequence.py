"""Sequence stage: lets the columns of a line see one another."""

from torch import Tensor, nn

HIDDEN = 256


class BiLstm(nn.Module):
    """Two bidirectional LSTM layers, each followed by a linear one: [N, T, channels] → [N, T, 256]."""

    channels = HIDDEN

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.recurrent = nn.ModuleList()
        self.linear = nn.ModuleList()
        for before in (channels, HIDDEN):
            self.recurrent.append(nn.LSTM(before, HIDDEN, bidirectional=True, batch_first=True))
            self.linear.append(nn.Linear(2 * HIDDEN, HIDDEN))

    def forward(self, columns: Tensor) -> Tensor:
        """Columns that know the whole line."""
        for recurrent, linear in zip(self.recurrent, self.linear, strict=True):
            columns = linear(recurrent(columns)[0])
        return columns
