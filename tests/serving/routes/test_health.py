from prometheus_client.parser import text_string_to_metric_families


def test_live_and_ready(service):
    assert service.http.get("/health/live").json() == {"status": "live"}
    assert service.http.get("/health/ready").json() == {"status": "ready"}


def test_metrics_count_requests(service, photo, encoded):
    def embedded():
        families = {family.name: family for family in text_string_to_metric_families(service.http.get("/metrics").text)}
        wanted = {"route": "/v1/embed", "method": "POST", "status": "200"}
        samples = families["readleaf_requests"].samples
        return sum(sample.value for sample in samples if sample.labels == wanted and sample.name.endswith("_total"))

    before = embedded()
    service.client.embed([encoded(photo())])
    assert embedded() == before + 1
