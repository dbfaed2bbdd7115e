"""From pictures to answers. Pipelines know models and pixels; they know nothing of HTTP."""
