import pytest

from serving.roles import Role, needed_role


def test_each_role_may_do_what_the_one_before_it_may():
    order = [Role.READ, Role.WRITE, Role.EXPERT, Role.ADMIN]
    for place, role in enumerate(order):
        assert [role.allows(needed) for needed in order] == [other <= place for other in range(4)]


@pytest.mark.parametrize(
    ("method", "route", "role"),
    [
        ("GET", "/v1/models", "read"),
        ("POST", "/v1/models/{name}/activate", "admin"),
        ("POST", "/v1/read", "read"),
        ("POST", "/v1/recognize", "read"),
        ("POST", "/v1/embed", "read"),
        ("POST", "/v1/classify", "read"),
        ("GET", "/v1/collections", "read"),
        ("POST", "/v1/collections", "write"),
        ("GET", "/v1/collections/{collection}", "read"),
        ("DELETE", "/v1/collections/{collection}", "admin"),
        ("POST", "/v1/collections/{collection}/search", "read"),
        ("POST", "/v1/collections/{collection}/identify", "read"),
        ("GET", "/v1/collections/{collection}/policy", "read"),
        ("PUT", "/v1/collections/{collection}/policy", "admin"),
        ("POST", "/v1/collections/{collection}/items", "write"),
        ("PATCH", "/v1/collections/{collection}/items/{item}", "write"),
        ("DELETE", "/v1/collections/{collection}/items/{item}", "write"),
        ("GET", "/v1/collections/{collection}/items/{item}/image", "read"),
        ("POST", "/v1/jobs", "write"),
        ("DELETE", "/v1/jobs/{job}", "write"),
        ("POST", "/v1/observations", "write"),
        ("GET", "/v1/observations/{observation}", "read"),
        ("POST", "/v1/observations/{observation}/votes", "expert"),
        ("POST", "/v1/observations/{id}/undo", "expert"),
        ("PUT", "/v1/observations/{id:int}/lease", "expert"),
        ("DELETE", "/v1/observations/{id}/lease", "expert"),
        ("POST", "/v1/review/next", "expert"),
        ("GET", "/v1/review/figures", "read"),
        ("GET", "/v1/taxa", "read"),
        ("POST", "/v1/taxa", "admin"),
        ("POST", "/v1/taxa/{taxon}/merge", "admin"),
        ("GET", "/v1/exports/dataset", "read"),
        ("BREW", "/v1/coffee", "write"),
    ],
)
def test_who_may(method, route, role):
    assert needed_role(method, route) == role
