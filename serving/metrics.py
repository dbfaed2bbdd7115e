"""What `/metrics` shows. One registry an app, so that two apps in one process do not mix."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class ModelServerStatistics(Collector):
    """What a model server tells of itself when it is asked; nothing if models run in this process."""

    @dataclass(frozen=True)
    class Row:
        """One version of a model."""

        model: str
        version: str
        queue_seconds: float
        compute_seconds: float
        failures: int
        runs: Mapping[int, int]  # by images in a run

    def __init__(self) -> None:
        self.source: Callable[[], list[ModelServerStatistics.Row]] | None = None

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The families, asked for anew at each look."""
        rows = self.source() if self.source is not None else []
        labels = ["model", "version"]
        for name, text in (
            ("queue_seconds", "Time that runs waited in a model server's queue."),
            ("compute_seconds", "Time that a model server calculated."),
            ("failures", "Runs that failed in a model server."),
        ):
            family = CounterMetricFamily(f"readleaf_model_server_{name}", text, labels=labels)
            for row in rows:
                family.add_metric([row.model, row.version], getattr(row, name))
            yield family
        runs = CounterMetricFamily(
            "readleaf_model_server_runs", "Runs in a model server, by images in a run.", labels=[*labels, "batch"]
        )
        for row in rows:
            for batch, count in row.runs.items():
                runs.add_metric([row.model, row.version, str(batch)], count)
        yield runs


class Metrics:
    """All counters of one app."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "readleaf_requests_total",
            "Requests answered, by route, method and status.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "readleaf_request_seconds",
            "Time from the request's first byte to the answer's last.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.inference_seconds = Histogram(
            "readleaf_inference_seconds",
            "Time of one run of a model, and over the network if it runs elsewhere.",
            ["model", "runtime"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.batch_size = Histogram(
            "readleaf_inference_batch_size",
            "Images in one run of a model, as the service asks for it.",
            ["model", "runtime"],
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=self.registry,
        )
        self.inference_errors = Counter(
            "readleaf_inference_errors_total",
            "Runs of a model that failed, by what went wrong.",
            ["model", "runtime", "error"],
            registry=self.registry,
        )
        self.queue_seconds = Histogram(
            "readleaf_queue_seconds",
            "Time a request waited for a place.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.server_statistics = ModelServerStatistics()
        self.registry.register(self.server_statistics)
        self.running = Gauge("readleaf_running_requests", "Requests being worked on.", registry=self.registry)
        self.waiting = Gauge("readleaf_waiting_requests", "Requests waiting for a place.", registry=self.registry)
        self.rejected = Counter(
            "readleaf_rejected_requests_total",
            "Requests turned away because the queue was full.",
            registry=self.registry,
        )

    @contextmanager
    def run(self, model: str, runtime: str, batch: int) -> Iterator[None]:
        """Count one run of a model."""
        self.batch_size.labels(model, runtime).observe(batch)
        started = time.perf_counter()
        try:
            yield
        except Exception as error:
            self.inference_errors.labels(model, runtime, type(error).__name__).inc()
            raise
        self.inference_seconds.labels(model, runtime).observe(time.perf_counter() - started)

    def text(self) -> bytes:
        """The Prometheus text."""
        return generate_latest(self.registry)
