"""torch module → ONNX file with a dynamic batch."""

import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import nn

OPSET = 20


def write_graph(
    module: nn.Module,
    frame: tuple[int, ...],
    input_name: str,
    output_names: Sequence[str],
    file: Path,
    varying: Mapping[int, Any] | None = None,
) -> None:
    """Export `module`, which takes uint8 [N, *frame], to `file`; `varying` names other axes that are not fixed."""
    example = torch.zeros((2, *frame), dtype=torch.uint8)
    axes = {0: torch.export.Dim("batch", min=1, max=4096), **(varying or {})}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter warns of its own internals
        program = torch.onnx.export(
            module.eval(),
            (example,),
            dynamo=True,
            input_names=[input_name],
            output_names=list(output_names),
            dynamic_shapes=(axes,),
            opset_version=OPSET,
            verbose=False,
        )
    assert program is not None
    graph = program.model_proto
    for node in graph.graph.node:  # source paths of the exporting machine; they would also change the sha256
        del node.metadata_props[:]
        node.doc_string = ""
    del graph.graph.metadata_props[:]
    del graph.metadata_props[:]
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, file)
