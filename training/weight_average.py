"""An average of a network's weights over the steps of its training: what is validated and kept."""

from copy import deepcopy
from typing import Any, TypeVar

from torch import nn

Network = TypeVar("Network", bound=nn.Module)


class WeightAverage:
    """An exponential average; early on of all steps so far."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.steps = decay, 0
        self.weights = {name: value.detach().clone() for name, value in model.state_dict().items()}

    def update(self, model: nn.Module) -> None:
        """Take in the weights of one step."""
        self.steps += 1
        keep = min(self.decay, self.steps / (self.steps + 10))
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                self.weights[name].lerp_(value, 1 - keep)
            else:
                self.weights[name].copy_(value)

    def state_dict(self) -> dict[str, Any]:
        """The average, and of how many steps it is."""
        return {"weights": self.weights, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with an average."""
        self.weights, self.steps = state["weights"], state["steps"]

    def of(self, model: Network) -> Network:
        """A network like `model` with the averaged weights."""
        averaged = deepcopy(model)
        averaged.load_state_dict(self.weights)
        return averaged.eval()
