"""`labels.tsv`: one row a label, tab separated, a header line, no quoting."""

import csv
from collections.abc import Set
from pathlib import Path

from training.errors import DataError


def read_table(table: Path, columns: Set[str]) -> list[dict[str, str]]:
    """All rows; says which of these columns are missing."""
    with table.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        missing = columns - set(reader.fieldnames or ())
        if missing:
            raise DataError(f"{table} lacks the columns {', '.join(sorted(missing))}")
        rows = list(reader)
    short = [row for row in rows if any(row[column] is None for column in columns)]
    if short:
        raise DataError(f"{table}: a row of {short[0]['file']} is cut off; it must have all columns")
    return rows
