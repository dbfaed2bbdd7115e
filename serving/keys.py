"""API keys: made, listed, revoked, and looked up at every request. The secret itself is kept nowhere."""

import hashlib
import secrets
import threading
import time
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from serving.errors import KeyUnknown
from serving.roles import Role
from serving.store.database import Database
from serving.store.review_tables import ApiKey
from serving.store.tables import now

SECRET_BYTES = 32
LONGEST_NAME = 100
REMEMBERED_SECONDS = 1.0  # a revocation by another process takes effect after this


def clean_owner(name: str) -> str:
    """Somebody's name in the one form that is compared; raises ValueError."""
    name = " ".join(unicodedata.normalize("NFC", name).split())
    kinds = {unicodedata.category(character) for character in name}
    if not 1 <= len(name) <= LONGEST_NAME or kinds & {"Cc", "Cs"} or all(kind[0] in "CZ" for kind in kinds):
        raise ValueError(f"a name has 1 to {LONGEST_NAME} visible characters")
    return name


def make_key(session: Session, owner: str, role: Role, lifetime: timedelta | None = None) -> tuple[ApiKey, str]:
    """A new key and its secret, which nobody can tell again."""
    # 256 random bits cannot be guessed, so a plain, quick digest keeps them as safe as a slow one would.
    secret = "rl_" + secrets.token_urlsafe(SECRET_BYTES)
    expires = None if lifetime is None else now() + lifetime
    key = ApiKey(name=clean_owner(owner), role=role.value, digest=_digest(secret), expires=expires)
    session.add(key)
    session.flush()
    return key, secret


def list_keys(session: Session) -> Sequence[ApiKey]:
    """All that were ever made, in that order."""
    return session.scalars(select(ApiKey).order_by(ApiKey.id)).all()


def revoke_key(session: Session, number: int) -> ApiKey:
    """Let nobody in with this key any more; raises KeyUnknown."""
    key = session.get(ApiKey, number)
    if key is None:
        raise KeyUnknown(f"there is no key {number}; `readleaf keys list` shows all")
    key.revoked = key.revoked or now()
    return key


def any_keys(session: Session) -> bool:
    """Whether a key was ever made.

    Revoked and expired ones count: a service must not open to everybody because its last key has run out.
    """
    return session.scalar(select(ApiKey.id).limit(1)) is not None


def is_live(key: ApiKey) -> bool:
    """Whether it lets its owner in: neither revoked nor expired."""
    return key.revoked is None and (key.expires is None or key.expires > now())


class KeyRing:
    """The keys as they were a second ago at most; may be called from any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._keys: Mapping[str, ApiKey] = {}  # by digest
        self._needed = False
        self._read_at = float("-inf")
        self._reading = threading.Lock()  # an older answer must not take the place of a newer one

    def needed(self) -> bool:
        """Whether callers need a key; once they do, they do until the service is started anew."""
        self._refresh()
        return self._needed

    def find(self, secret: str) -> ApiKey | None:
        """The live key of a secret."""
        self._refresh()
        digest = _digest(secret)
        if digest not in self._keys:
            self._read()  # it may have been made this very second
        key = self._keys.get(digest)
        return key if key is not None and is_live(key) else None

    def _refresh(self) -> None:
        if time.monotonic() - self._read_at > REMEMBERED_SECONDS:
            self._read()

    def _read(self) -> None:
        with self._reading:
            started = time.monotonic()
            with self._database.reading() as session:
                self._keys = {key.digest: key for key in list_keys(session)}
            self._needed = self._needed or bool(self._keys)
            self._read_at = started


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
