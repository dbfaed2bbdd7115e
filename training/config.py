"""Configs: a TOML file becomes a frozen dataclass; an unknown key or a wrong type is an error that names it."""

import tomllib
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from training.errors import DataError

T = TypeVar("T")


def read_config(kind: type[T], file: Path, changes: dict[str, str] | None = None) -> T:
    """Read `file` as a `kind`; `changes` are `key=value` texts from the command line, values as in TOML."""
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"there is no config at {file}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is not TOML: {error}") from error
    for key, text in (changes or {}).items():
        section = values
        *parents, last = key.split(".")
        for parent in parents:
            section = section.setdefault(parent, {})
        section[last] = _parse(text)
    return _build(kind, values, str(file))


def _parse(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _build(kind: type[T], values: dict[str, Any], where: str) -> T:
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise DataError(f"{where}: unknown key {unknown[0]}; known are {', '.join(sorted(known))}")
    missing = [
        name
        for name, field in known.items()
        if name not in values and field.default is MISSING and field.default_factory is MISSING
    ]
    if missing:
        raise DataError(f"{where}: the key {missing[0]} is missing")
    return kind(**{name: _convert(hints[name], value, f"{where}: {name}") for name, value in values.items()})


def _convert(kind: Any, value: Any, where: str) -> Any:
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise DataError(f"{where} must be a table")
        return _build(kind, value, where)  # type: ignore[arg-type]
    if kind is float and type(value) is int:
        return float(value)
    if get_origin(kind) is tuple:
        (member, _) = kind.__args__
        if not isinstance(value, list):
            raise DataError(f"{where} must be a list")
        return tuple(_convert(member, entry, where) for entry in value)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise DataError(f"{where} must be one of {', '.join(map(str, get_args(kind)))}, not {value!r}")
        return value
    if type(value) is not kind:
        raise DataError(f"{where} must be {kind.__name__}, not {value!r}")
    return value
