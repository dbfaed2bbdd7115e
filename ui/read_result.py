"""What a crop was read as, as HTML: the word, its characters with their doubts, and a word on how sure to be."""

import html

from serving.schemas import CharacterReading, WordReading
from ui.sentences import sentence

SURE, UNSURE = 0.9, 0.5  # of the whole word
DOUBT = 0.95  # a character less sure than this shows what else it may be
LEAST = 0.01  # share from which an alternative is shown
INVITATION = (
    '<div class="rl-result"><p class="rl-hint">Drop a picture of one word, cut closely. Letters, digits and signs of '
    "English are read; other scripts are not.</p></div>"
)
# The button copies the word; it says so for a moment.
COPY = """
element.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  const name = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = name; }, 1500);
});
"""


def refusal(reason: str) -> str:
    """Why there is no answer."""
    return f'<div class="rl-result"><p class="rl-error">{sentence(reason)}</p></div>'


def show(reading: WordReading) -> str:
    """The whole reading."""
    if not reading.text:
        return (
            '<div class="rl-result" role="status"><h2>Nothing to read</h2>'
            "<p>No letters were found. Is the word cut out closely, and written in Latin letters?</p></div>"
        )
    letters = "".join(map(_letter, reading.characters or ()))
    text = html.escape(reading.text)
    turned = f" It was turned by {reading.turned}° to be read." if reading.turned else ""
    return (
        f'<div class="rl-result" role="status"><h2 class="rl-word">{text}</h2>'
        f"<p>{_sureness(reading.confidence)}{turned}</p>"
        f'<ol class="rl-letters" aria-label="Characters and how sure they are">{letters}</ol>'
        f'<button type="button" class="rl-copy" data-copy="{text}">Copy the word</button></div>'
    )


def _sureness(confidence: float) -> str:
    share = f"{confidence:.0%}"
    if confidence >= SURE:
        return f"Sure: {share} likely right."
    if confidence >= UNSURE:
        return f"Fairly sure: {share} likely right. Pale characters are the doubtful ones."
    return f"Not sure: only {share} likely right. Look at the pale characters."


def _letter(character: CharacterReading) -> str:
    others = ""
    if character.confidence < DOUBT:
        kept = [other for other in character.alternatives if other.confidence >= LEAST]
        named = ((html.escape(other.text) or "nothing", other.confidence) for other in kept)
        others = "".join(f"<li>or {name} {share:.0%}</li>" for name, share in named)
    return (
        f'<li style="--sure: {character.confidence:.2f}"><b>{html.escape(character.text)}</b>'
        f"<small>{character.confidence:.0%}</small><ul>{others}</ul></li>"
    )
