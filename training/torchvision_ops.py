"""Makes torchvision importable beside a CPU build of torch.

torchvision's wheel is compiled for CUDA. Beside a CPU torch its compiled operators are missing, and the
import fails on the two that it re-registers; declaring them is enough for everything we use.
"""

import torch

SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def declare_missing_operators() -> None:
    """Declare `torchvision::nms` and `::qnms` once, if the compiled ones are not there."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            if not hasattr(torch.ops.torchvision, name):
                library.define(name + SIGNATURE)
        _KEPT.append(library)


# A Library that is collected takes its operators with it.
_KEPT: list[torch.library.Library] = []
