"""Which version of each model answers; the database remembers it, so that a new version on disk changes nothing."""

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from serving.store.tables import ModelInUse, now


def chosen_versions(session: Session) -> dict[str, int]:
    """The version of each model that was in use last."""
    return {row.name: row.version for row in session.scalars(select(ModelInUse))}


def note_versions(session: Session, versions: Mapping[str, int]) -> None:
    """Remember the versions of some models."""
    for name, version in versions.items():
        row = session.get(ModelInUse, name)
        if row is None:
            session.add(ModelInUse(name=name, version=version))
        elif row.version != version:
            row.version, row.since = version, now()
