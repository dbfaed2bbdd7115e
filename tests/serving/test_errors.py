import re

from serving import errors


def _all(kind):
    return {kind, *(found for child in kind.__subclasses__() for found in _all(child))}


def test_the_tree_in_the_docstring_is_whole():
    for kind in _all(errors.ReadleafError):
        assert f"{kind.__name__} " in errors.__doc__ or f"{kind.__name__}\n" in errors.__doc__


def test_every_problem_type_is_its_own():
    kinds = _all(errors.RequestError) - {errors.RequestError}
    assert len({kind.kind for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert 400 <= kind.status < 600
        assert re.search(rf"{kind.__name__} +{kind.status}\b", errors.__doc__), kind


def test_problem_document():
    error = errors.RequestInvalid("k: too small", errors=[{"field": "k"}])
    assert error.problem("abc") == {
        "type": "urn:readleaf:problem:request-invalid",
        "title": errors.RequestInvalid.title,
        "status": 422,
        "detail": "k: too small",
        "request_id": "abc",
        "errors": [{"field": "k"}],
    }
