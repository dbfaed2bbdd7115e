"""Keeps the tables of `serving/README.md` true: settings, error types and metrics, from the code itself.

python -m serving.reference    rewrites them; a test compares.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from serving.errors import RequestError
from serving.metrics import Metrics
from serving.settings import Settings

README = Path(__file__).with_name("README.md")


def settings_table() -> str:
    """Every setting with its default and meaning."""
    rows = [
        f"| `READLEAF_{name.upper()}` | `{_default(name)}` | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


def errors_table() -> str:
    """Every problem type that a request may meet."""
    rows = [f"| {kind.status} | `{kind.type_uri()}` | {kind.title} |" for kind in _leaves(RequestError)]
    return "\n".join(["| status | `type` | meaning |", "|---|---|---|", *sorted(rows)])


def metrics_table() -> str:
    """Every metric of `/metrics`."""
    families = Metrics().registry.collect()
    rows = [f"| `{family.name}` | {family.type} | {family.documentation} |" for family in families]
    return "\n".join(["| metric | kind | meaning |", "|---|---|---|", *rows])


def rewritten(text: str) -> str:
    """`text` with every table between its marks made anew."""
    tables = {"settings": settings_table(), "errors": errors_table(), "metrics": metrics_table()}
    for name, table in tables.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        text = mark.sub(lambda match, table=table: match[1] + table + match[2], text)  # type: ignore[misc]
    return text


def _default(name: str) -> str:
    value = Settings.model_fields[name].default
    if name == "data_dir":
        return "~/" + str(value.relative_to(Path.home()))
    return value.name if isinstance(value, Path) else str(value).lower() if isinstance(value, bool) else str(value)


def _leaves(kind: type[RequestError]) -> Iterator[type[RequestError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _leaves(child)


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text()))
