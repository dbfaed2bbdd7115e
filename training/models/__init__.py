"""Networks, as plain torch modules."""

from training.torchvision_ops import declare_missing_operators

declare_missing_operators()  # timm imports torchvision
