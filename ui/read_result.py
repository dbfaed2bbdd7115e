"""What stands in a picture, as HTML: the picture with a frame around each word, and beside it the text by lines."""

import html
import math
from collections.abc import Sequence
from itertools import groupby

from serving.schemas import FoundLine, FoundWord, ReadResponse
from ui.sentences import sentence

DOUBTFUL = 0.7  # a word less sure than this has a dashed frame
LEAST = 0.4  # words less sure than this are hidden until the slider is moved
LEVEL = 2  # degrees: what is turned by less looks level
SMALL = 0.03  # of the picture's width: words lower than this have thin frames
LARGEST = 3  # small pictures are shown at this many times their size at most
LETTERS = "Letters, digits and signs of English are read; other scripts are not."
INVITATION = (
    '<div class="rl-result"><p class="rl-hint">Drop a picture with words in it: a sign, a label, a page, at any '
    f"angle. {LETTERS}</p></div>"
)
NOTHING = (
    '<div class="rl-result" role="status"><h2>No words found</h2><p>Are they written in Latin letters, and not too '
    f"small? Go closer, or cut out the part with the words. {LETTERS}</p></div>"
)
HOCR = "An hOCR file holds the place of each word, too: tools such as hocr-pdf make a searchable PDF of it."
Button = tuple[str, str, str]  # what read.js does, its name, and what it is for
AT_PICTURE: tuple[Button, ...] = (
    ("zoom", "Zoom in", "Twice as large, then four times"),
    ("clear", "Another picture", "Back to the start"),
)
AT_TEXT: tuple[Button, ...] = (
    ("copy", "Copy all", "The text that is shown"),
    ("txt", "Download text", "The text that is shown, as a plain file"),
    ("hocr", "Download hOCR", "The text that is shown, with the place of each word"),
    ("json", "Download JSON", "The whole answer of the service, hidden words included"),
)


def refusal(reason: str) -> str:
    """Why there is no answer."""
    return f'<div class="rl-result"><p class="rl-error" role="alert">{sentence(reason)}</p></div>'


def show(answer: ReadResponse, address: str, name: str) -> str:
    """The whole result; the picture is at `address`, downloads get its `name`. `read.js` makes it move."""
    if not answer.words:
        return NOTHING
    data = html.escape(answer.model_dump_json())
    return (
        f'<div class="rl-page" data-name="{html.escape(name)}" data-answer="{data}"><div class="rl-left">'
        f"{_picture(answer, address)}{_buttons(AT_PICTURE)}</div>"
        f'<div class="rl-side">{_slider()}{_text(answer)}{_buttons(AT_TEXT)}'
        f'<p class="rl-hint">{LETTERS} {HOCR}</p></div></div>'
    )


def _picture(answer: ReadResponse, address: str) -> str:
    width, height = answer.image.width, answer.image.height
    boxes = "".join(_box(number, answer.words[number], SMALL * width) for line in answer.lines for number in line.words)
    # As large as its column and the screen allow; the frames lie in pixels of the upright picture whatever that is.
    style = f"--ratio: {width / height:.4f}; --most: {LARGEST * width}px"
    return (
        f'<div class="rl-frame"><div class="rl-stage" style="{style}">'
        f'<img src="{html.escape(address)}" alt="The picture that was read">'
        f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="listbox" '
        f'aria-label="Words in the picture; arrow keys go from one to the next">{boxes}</svg>'
        '<p class="rl-tag" aria-hidden="true" hidden></p></div></div>'
    )


def _box(number: int, word: FoundWord, small: float) -> str:
    thin = " rl-small" if math.dist(word.polygon[0], word.polygon[3]) < small else ""
    corners = " ".join(f"{x:g},{y:g}" for x, y in word.polygon)
    label = html.escape(f"{word.text}, {about(word)}")
    # A dark line below a light one can be seen on any photograph.
    return (
        f'<g class="rl-box{_doubt(word)}{thin}" role="option" tabindex="-1" aria-selected="false" aria-label="{label}" '
        f'data-word="{number}"><polygon points="{corners}"/><polygon points="{corners}"/></g>'
    )


def about(word: FoundWord) -> str:
    """How sure a word is, and how it lies. Rounded down: nothing is 100% sure that is not."""
    degrees = abs(word.angle)
    if degrees < LEVEL:
        lies = "level"
    elif degrees > 180 - LEVEL:
        lies = "upside down"
    else:
        lies = f"turned {degrees:.0f}° {'clockwise' if word.angle > 0 else 'anticlockwise'}"
    return f"{int(100 * word.confidence)}% sure, {lies}"


def _slider() -> str:
    return (
        '<h2><span class="rl-count" role="status"></span></h2><label class="rl-least">'
        f"<span>Show words surer than <b>{LEAST:.0%}</b></span>"
        f'<input type="range" min="0" max="1" step="0.01" value="{LEAST}"></label>'
    )


def _text(answer: ReadResponse) -> str:
    blocks = (list(lines) for _, lines in groupby(answer.lines, key=lambda line: line.block))
    written = "".join(_block(lines, answer.words) for lines in blocks)
    none = '<p class="rl-none" hidden>No word is that sure. Move the slider to the left.</p>'
    return f'<div class="rl-text" role="group" aria-label="Text; arrow keys go from word to word">{written}{none}</div>'


def _block(lines: Sequence[FoundLine], words: Sequence[FoundWord]) -> str:
    return "<ol>" + "".join(f"<li>{' '.join(_word(n, words[n]) for n in line.words)}</li>" for line in lines) + "</ol>"


def _word(number: int, word: FoundWord) -> str:
    return (
        f'<span class="rl-seen{_doubt(word)}" tabindex="-1" aria-description="{about(word)}" data-word="{number}">'
        f"{html.escape(word.text)}</span>"
    )


def _doubt(word: FoundWord) -> str:
    return " rl-doubtful" if word.confidence < DOUBTFUL else ""


def _buttons(buttons: Sequence[Button]) -> str:
    made = (
        f'<button type="button" class="rl-copy" data-do="{wish}" title="{title}">{name}</button>'
        for wish, name, title in buttons
    )
    return f'<div class="rl-buttons">{"".join(made)}</div>'
