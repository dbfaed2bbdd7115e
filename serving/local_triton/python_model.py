"""What Triton's python backend runs: the graph beside this file, in onnxruntime. Copied into every version's folder.

It runs in the Python of Triton's own environment and may import nothing of ours.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import triton_python_backend_utils as triton  # type: ignore[import-not-found]


class TritonPythonModel:
    """One instance of one version of a model."""

    def initialize(self, args: dict[str, str]) -> None:
        """Open the graph."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        graph = Path(args["model_repository"]) / args["model_version"] / "model.onnx"
        self._session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        [self._input] = [node.name for node in self._session.get_inputs()]
        self._outputs = [node.name for node in self._session.get_outputs()]

    def execute(self, requests: list[Any]) -> list[Any]:
        """Run the requests of a batch as one, and give each its part; they have one shape, as Triton sees to it."""
        batches = [triton.get_input_tensor_by_name(request, self._input).as_numpy() for request in requests]
        ends = np.cumsum([len(batch) for batch in batches])
        answers = self._session.run(self._outputs, {self._input: np.concatenate(batches)})
        parts = [np.split(answer, ends[:-1]) for answer in answers]
        return [
            triton.InferenceResponse(
                [triton.Tensor(name, part[number]) for name, part in zip(self._outputs, parts, strict=True)]
            )
            for number in range(len(requests))
        ]
