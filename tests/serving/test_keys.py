import threading
from datetime import timedelta

import pytest

from serving import keys
from serving.errors import KeyUnknown
from serving.keys import KeyRing, any_keys, clean_owner, list_keys, make_key, revoke_key
from serving.roles import Role
from serving.store.database import open_database


@pytest.fixture
def database(tmp_path):
    with open_database(tmp_path / "readleaf.db") as opened:
        yield opened


@pytest.fixture
def make(database):
    """`make("Ann", Role.READ)`: the key's number and its secret."""

    def made(owner="Ann", role=Role.READ, lifetime=None):
        with database.writing() as session:
            key, secret = make_key(session, owner, role, lifetime)
            return key.id, secret

    return made


def test_no_key_was_made(database):
    ring = KeyRing(database)
    assert not ring.needed()
    assert ring.find("rl_anything") is None
    with database.reading() as session:
        assert not any_keys(session)


def test_a_key_is_found_by_its_secret_alone(database, make):
    number, secret = make("Ann", Role.EXPERT)
    _, other = make("Ben")
    assert secret.startswith("rl_")
    assert len(secret) == 46
    assert secret != other
    found = KeyRing(database).find(secret)
    assert (found.id, found.name, found.role, found.expires) == (number, "Ann", "expert", None)
    for wrong in ("", secret[:-1], secret + "=", secret.upper(), "rl_", "ř"):
        assert KeyRing(database).find(wrong) is None


def test_the_secret_is_nowhere_on_the_disk(tmp_path):
    with open_database(tmp_path / "readleaf.db") as database, database.writing() as session:
        _, secret = make_key(session, "Ann", Role.READ)
    files = [file.read_bytes() for file in tmp_path.iterdir()]
    assert any(b"Ann" in content for content in files)
    assert not any(secret.encode() in content or secret[3:].encode() in content for content in files)


def test_an_expired_key_lets_nobody_in(database, make, monkeypatch):
    _, secret = make(lifetime=timedelta(days=1))
    ring = KeyRing(database)
    assert ring.find(secret)
    later = keys.now() + timedelta(days=1, seconds=1)
    monkeypatch.setattr(keys, "now", lambda: later)
    assert ring.find(secret) is None  # at once: its end is known beforehand


def test_a_revocation_by_another_process_is_followed(database, make, monkeypatch):
    number, secret = make()
    ring = KeyRing(database)
    assert ring.find(secret)
    with database.writing() as session:
        first = revoke_key(session, number).revoked
    clock = keys.time.monotonic() + keys.REMEMBERED_SECONDS + 0.01
    monkeypatch.setattr(keys.time, "monotonic", lambda: clock)
    assert ring.find(secret) is None
    with database.writing() as session:
        assert revoke_key(session, number).revoked == first


def test_a_key_made_this_very_second_lets_in(database, make):
    ring = KeyRing(database)
    assert not ring.needed()
    _, secret = make()
    assert ring.find(secret)
    assert ring.needed()


def test_keys_are_needed_when_none_is_left(database, make):
    number, _ = make()
    make(lifetime=timedelta(days=-1))
    with database.writing() as session:
        revoke_key(session, number)
    assert KeyRing(database).needed()
    with database.reading() as session:
        assert any_keys(session)


def test_a_running_service_never_opens_again(database, make, monkeypatch):
    """Not even when the database is replaced by an older one."""
    make()
    ring = KeyRing(database)
    assert ring.needed()
    with database.writing() as session:
        for key in list_keys(session):
            session.delete(key)
    monkeypatch.setattr(keys, "REMEMBERED_SECONDS", 0)
    assert ring.needed()


def test_a_number_that_no_key_has(database):
    with database.writing() as session, pytest.raises(KeyUnknown, match=r"no key 7.*keys list"):
        revoke_key(session, 7)


def test_many_threads_ask_at_once(database, make, monkeypatch):
    monkeypatch.setattr(keys, "REMEMBERED_SECONDS", 0)
    _, secret = make()
    ring, found = KeyRing(database), []
    threads = [
        threading.Thread(target=lambda: found.extend(bool(ring.find(secret)) for _ in range(20))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 160


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("  Ann ", "Ann"),
        ("Ann \t Lee", "Ann Lee"),
        ("Jirˇí".replace("rˇ", "r\u030c"), "Jiří"),
        ("李", "李"),
        ("x" * 100, "x" * 100),
    ],
)
def test_one_person_one_form_of_the_name(given, name):
    assert clean_owner(given) == name


@pytest.mark.parametrize("given", ["", "  ", "\u200b", "x" * 101, "Ann\0", "\ud800"])
def test_what_is_no_name(given):
    with pytest.raises(ValueError, match="1 to 100 visible"):
        clean_owner(given)
