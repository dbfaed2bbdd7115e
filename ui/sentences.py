"""Words for people."""

import html


def sentence(text: str) -> str:
    """A message as a sentence, safe to stand in HTML."""
    return html.escape(text[:1].upper() + text[1:].rstrip(".") + ".")
