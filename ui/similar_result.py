"""What a search found, as HTML: a verdict, the vote as bars, the neighbours as cards."""

import html

from serving.schemas import CollectionInfo, LabelVote, NeighbourInfo, SearchResponse
from ui.sentences import sentence

SURE = 0.6  # share of the vote from which a label is named without a doubt
BARS = 5
# A click on a card's button says which item it is; the card stays marked.
CHOOSE = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-item]");
  if (!button) return;
  for (const card of element.querySelectorAll(".rl-card")) card.classList.toggle("rl-marked", card.contains(button));
  const { item, number, label } = button.dataset;
  trigger("select", { item: Number(item), number: Number(number), label });
});
"""


def _message(text: str, kind: str = "rl-hint") -> str:
    return f'<div class="rl-result"><p class="{kind}">{text}</p></div>'


NO_COLLECTION = _message("There is no collection yet. Make one under Collections below, and add pictures to it.")


def invite(collection: CollectionInfo) -> str:
    """What to do, and what there is to be found."""
    name, described = html.escape(collection.name), html.escape(collection.description)
    if not collection.items:
        return _message(f"{name} is empty. Add pictures to it under Collections below.")
    kinds = f" of {len(collection.labels):,} kinds" if collection.labels else ""
    outdated = ""
    if collection.outdated:
        outdated = f" {collection.outdated:,} of them were added with another model and wait for a rebuild."
    there = f"It is compared with {collection.items:,} pictures{kinds} in {name}. {described}{outdated}"
    return _message(f"Drop a picture, paste one, or take one with the camera. {there}")


def refusal(reason: str) -> str:
    """Why there is no answer."""
    return _message(sentence(reason), "rl-error")


def show(answer: SearchResponse, only: str = "") -> str:
    """The whole result; among items of `only` one label, a vote would say nothing."""
    cards = "".join(_card(number, neighbour) for number, neighbour in enumerate(answer.neighbours, start=1))
    bars = "" if answer.rejected or only else "".join(map(_bar, answer.labels[:BARS]))
    return (
        f'<div class="rl-result" role="status">{_verdict(answer, only)}'
        f'<div class="rl-bars">{bars}</div><ol class="rl-cards">{cards}</ol></div>'
    )


def _verdict(answer: SearchResponse, only: str) -> str:
    if answer.rejected:
        return f"<h2>None of these</h2><p>{sentence(answer.reason or '')}</p>"
    if only:
        return f"<h2>The most similar of {html.escape(only)}</h2>"
    if not answer.labels:
        return "<h2>These look alike</h2><p>None of them has a label.</p>"
    best = answer.labels[0]
    sure = "Probably" if best.score >= SURE else "Perhaps"
    of = sum(vote.votes for vote in answer.labels)
    return f"<h2>{sure} {html.escape(best.label)}</h2><p>{best.votes} of {of} look-alikes with a label say so.</p>"


def _bar(vote: LabelVote) -> str:
    return (
        f'<div class="rl-bar"><span>{html.escape(vote.label)}</span>'
        f'<meter min="0" max="1" value="{vote.score:.3f}"></meter><b>{vote.score:.0%}</b></div>'
    )


def _card(number: int, neighbour: NeighbourInfo) -> str:
    name, label = html.escape(neighbour.label or "no label"), html.escape(neighbour.label or "")
    picture, kind = "", "rl-card rl-bare"
    if neighbour.thumbnail_url and neighbour.image_url:
        # Addresses of the API, relative to the page, so that both may stand behind a prefix.
        image, thumbnail = (html.escape(url.lstrip("/")) for url in (neighbour.image_url, neighbour.thumbnail_url))
        picture = f'<a href="{image}" target="_blank"><img src="{thumbnail}" alt="{name}" loading="lazy"></a>'
        kind = "rl-card"
    return (
        f'<li class="{kind}">{picture}<span>{number}. {name}</span>'
        f'<button type="button" data-item="{neighbour.item}" data-number="{number}" data-label="{label}">'
        f"Wrong label?</button><small>{neighbour.score:.2f}</small></li>"
    )
