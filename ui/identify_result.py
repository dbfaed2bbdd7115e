"""What an organism may be, as HTML: a verdict, candidates with what speaks for each, and what became of it."""

import html

from serving.review_schemas import IdentifyResponse, ObservationInfo, TaxonPrediction
from serving.schemas import CollectionInfo, NeighbourInfo
from ui.sentences import sentence

SURE = 0.6  # score from which a candidate is named without a doubt
SHOWN = 5  # candidates


def _message(text: str, kind: str = "rl-hint") -> str:
    return f'<div class="rl-result"><p class="{kind}">{text}</p></div>'


NO_COLLECTION = _message("There is no collection yet to compare with. Make one under Find similar, Collections.")


def invite(collection: CollectionInfo) -> str:
    """What to do, and what there is to compare with."""
    name = html.escape(collection.name)
    there = f"It is compared with {collection.items:,} pictures of {len(collection.labels):,} kinds in {name}."
    if not collection.items:
        there = f"{name} is empty, so nothing can be suggested yet; an expert can name it all the same."
    return _message(f"Drop one to five pictures of one organism: the flower, a leaf, all of it. {there}")


def refusal(reason: str) -> str:
    """Why there is no answer."""
    return _message(sentence(reason), "rl-error")


def show(answer: IdentifyResponse) -> str:
    """The whole result."""
    candidates = "".join(map(_candidate, answer.predictions[:SHOWN]))
    return (
        f'<div class="rl-result rv-found" role="status">{_verdict(answer)}'
        f'<ol class="rv-options">{candidates}</ol></div>'
    )


def _verdict(answer: IdentifyResponse) -> str:
    if answer.rejected:
        nearest = " The nearest all the same:" if answer.predictions else ""
        return f"<h2>None of these</h2><p>{sentence(answer.reason or '')}{nearest}</p>"
    if not answer.predictions:
        return "<h2>No suggestion</h2><p>Nothing with a label looks like it. An expert can name it.</p>"
    best = answer.predictions[0]
    sure = "Probably" if best.score >= SURE else "Perhaps"
    return f"<h2>{sure} {html.escape(best.label)}</h2>"


def _candidate(found: TaxonPrediction) -> str:
    name = html.escape(found.label)
    proofs = "".join(_proof(found.label, number, near) for number, near in enumerate(found.evidence, start=1))
    return (
        f"<li><div><strong>{name}</strong>{_aside(found)}<b>{found.score:.0%}</b></div>"
        f'<span class="rv-bar" aria-hidden="true"><span style="width:{100 * found.score:.1f}%"></span></span>'
        f"<small>{_why(found)}</small>{f'<ul>{proofs}</ul>' if proofs else ''}</li>"
    )


def _aside(found: TaxonPrediction) -> str:
    """Rank and common names, where they are known."""
    if found.taxon is None:
        return ""
    rank = [] if found.taxon.rank == "unranked" else [found.taxon.rank]
    words = " · ".join([*rank, *found.taxon.common_names])
    return f" <small>{html.escape(words)}</small>" if words else ""


def _why(found: TaxonPrediction) -> str:
    """What speaks for it, apart."""
    known = "" if found.classifier is None else f" · classifier {found.classifier:.0%}"
    unseen = sum(not near.thumbnail_url for near in found.evidence)
    without = f" · {unseen} without their pictures" if unseen else ""
    return f"look-alikes {found.neighbours:.0%}{known}{without}"


def _proof(label: str, number: int, near: NeighbourInfo) -> str:
    if not near.thumbnail_url or not near.image_url:
        return ""
    # Addresses of the API, relative to the page, so that both may stand behind a prefix.
    image, thumbnail = (html.escape(url.lstrip("/")) for url in (near.image_url, near.thumbnail_url))
    alt = html.escape(f"{label}, look-alike {number}")
    return (
        f'<li><a href="{image}" target="_blank"><img src="{thumbnail}" alt="{alt}" loading="lazy"></a>'
        f"<small>{near.score:.2f}</small></li>"
    )


def sent(observation: ObservationInfo) -> str:
    """Under which number it waits, and what happens next."""
    collection = html.escape(observation.collection)
    return (
        f'<p class="rl-note rl-done" role="status"><b>Sent: this is observation {observation.id}.</b> It waits under '
        f"Verify. Once an expert has named it, its pictures are in {collection}, and the next one like it is compared "
        "with them.</p>"
    )
