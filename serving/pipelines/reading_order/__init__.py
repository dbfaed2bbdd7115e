"""From words at any angle to lines in reading order: directions, slopes, rows, columns; `layout.py` is the way in."""
