"""What is counted, as Prometheus reads it."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from serving.metrics import Metrics, ModelServerStatistics


def value(metrics, name, **labels):
    """A number of `/metrics`; None if it is not there."""
    found = [
        sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if sample.name == f"readleaf_{name}" and sample.labels == labels
    ]
    assert len(found) <= 1
    return found[0] if found else None


def test_runs_by_model_and_runtime():
    metrics = Metrics()
    for model, runtime, batch in (("embedder", "onnx", 2), ("embedder", "onnx", 4), ("embedder", "triton", 1)):
        with metrics.run(model, runtime, batch):
            pass
    assert value(metrics, "inference_seconds_count", model="embedder", runtime="onnx") == 2
    assert value(metrics, "inference_seconds_count", model="embedder", runtime="triton") == 1
    assert value(metrics, "inference_batch_size_sum", model="embedder", runtime="onnx") == 6
    assert "inference_errors_total{" not in metrics.text().decode()


def test_runs_that_fail_are_counted_by_what_went_wrong():
    metrics = Metrics()
    for error in (TimeoutError, TimeoutError, ValueError):
        with pytest.raises(error), metrics.run("embedder", "triton", 1):
            raise error
    for error, count in (("TimeoutError", 2), ("ValueError", 1)):
        assert value(metrics, "inference_errors_total", model="embedder", runtime="triton", error=error) == count
    assert value(metrics, "inference_seconds_count", model="embedder", runtime="triton") is None


def test_a_model_server_tells_of_itself():
    metrics = Metrics()
    asked = []

    def source():
        asked.append(True)
        return [ModelServerStatistics.Row("embedder", "2", 0.5, 1.5, 3, {1: 7, 8: 2})]

    assert "readleaf_model_server_queue_seconds_total{" not in metrics.text().decode()
    metrics.server_statistics.source = source
    for name, expected in (("queue_seconds", 0.5), ("compute_seconds", 1.5), ("failures", 3)):
        assert value(metrics, f"model_server_{name}_total", model="embedder", version="2") == expected
    for batch, runs in (("1", 7), ("8", 2)):
        assert value(metrics, "model_server_runs_total", model="embedder", version="2", batch=batch) == runs
    assert len(asked) == 5  # anew at each look
    metrics.server_statistics.source = None
    assert "readleaf_model_server_queue_seconds_total{" not in metrics.text().decode()
