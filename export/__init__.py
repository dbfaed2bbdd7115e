"""From a trained network to a model repository that the service and Triton both read."""
