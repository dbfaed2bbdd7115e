"""The API against its own description: schemathesis invents requests, good and bad."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance


@pytest.mark.campaign
def test_every_answer_is_as_described(service, rounds):
    """For each operation: status, headers and body must be ones that the description names."""
    description = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    checked = []
    for found in description.get_all_operations():
        operation = found.ok()

        @settings(max_examples=rounds(25, 1000), deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def check(case):
            # To the description any bytes are a file; that they are no picture, only the service can tell.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        check()
        checked.append(operation.label)
    assert "POST /v1/embed" in checked


def test_every_error_is_described_with_an_example(service):
    description = service.http.get("/openapi.json").json()
    for path, operations in description["paths"].items():
        for operation in operations.values():
            assert operation["summary"], path
            for status, answer in operation["responses"].items():
                assert answer["description"], (path, status)
                if int(status) >= 400 and path.startswith("/v1"):
                    assert answer["content"]["application/problem+json"]["examples"], (path, status)
