"""What `/metrics` shows. One registry an app, so that two apps in one process do not mix."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


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
            "Time of one run of a model.",
            ["model"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.batch_size = Histogram(
            "readleaf_inference_batch_size",
            "Images in one run of a model.",
            ["model"],
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=self.registry,
        )
        self.running = Gauge("readleaf_running_requests", "Requests being worked on.", registry=self.registry)
        self.waiting = Gauge("readleaf_waiting_requests", "Requests waiting for a place.", registry=self.registry)
        self.rejected = Counter(
            "readleaf_rejected_requests_total",
            "Requests turned away because the queue was full.",
            registry=self.registry,
        )

    def text(self) -> bytes:
        """The Prometheus text."""
        return generate_latest(self.registry)
