"""Compare: two pictures, and how alike they are."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import gradio as gr

from serving.client import ApiError, Client, ServiceUnreachable
from serving.schemas import SimilarityScale
from ui.picture import picture_field
from ui.sentences import sentence

HINT = "Choose two pictures. They are compared by what they show, not by their pixels."
WAITING = f'<div class="rl-result"><p class="rl-hint">{HINT}</p></div>'


def build_tab(client: Client, samples: Mapping[str, Path]) -> None:
    """Add the tab to the page that is being built."""

    def show(first: str | None, second: str | None) -> str:
        return compare(client, first, second)

    with gr.Tab("Compare", id="compare"):
        with gr.Row(equal_height=True):
            pictures = [
                picture_field("First picture", "first-picture"),
                picture_field("Second picture", "second-picture"),
            ]
        result = gr.HTML(WAITING, elem_id="compare-result", padding=False)
        gr.Examples(
            [
                [str(samples["oak-1"]), str(samples["oak-2"])],
                [str(samples["oak-1"]), str(samples["willow"])],
            ],
            inputs=pictures,
            label="No pictures at hand? Try two pressed leaves",
            cache_examples=False,
        )
        gr.on(
            [picture.change for picture in pictures],
            show,
            inputs=pictures,
            outputs=result,
            api_visibility="private",
            trigger_mode="always_last",
        )


def compare(client: Client, first: str | None, second: str | None) -> str:
    """The result as HTML; an error is a sentence in its place, never a stack trace."""
    if first is None or second is None:
        return WAITING
    try:
        answer = client.embed([Path(first), Path(second)])
        scale = next(model.similarity for model in client.models().models if model.name == answer.model.name)
    except (ApiError, ServiceUnreachable) as error:
        return f'<div class="rl-result"><p class="rl-error" role="alert">{sentence(str(error))}</p></div>'
    one, two = answer.embeddings
    similarity = sum(a * b for a, b in zip(one, two, strict=True))
    if scale is None:
        return f'<div class="rl-result"><h2>Similarity {similarity:.2f}</h2></div>'
    return f'<div class="rl-result" role="status">{_words(similarity, scale)}{_drawing(similarity, scale)}</div>'


def _words(similarity: float, scale: SimilarityScale) -> str:
    among_different = share_below(similarity, scale.different)
    among_same = share_below(similarity, scale.same)
    if similarity > 0.995:
        verdict = "Practically the same picture"
    elif among_different >= 98 and among_same >= 25:
        verdict = "Very alike: probably the same kind"
    elif among_different >= 90:
        verdict = "Alike, though kinds may differ"
    elif among_different >= 60:
        verdict = "A little alike"
    else:
        verdict = "Not alike"
    return (
        f"<h2>{verdict}</h2>"
        f"<p>Similarity <b>{similarity:.2f}</b>. {_share(among_different)} pairs of different kinds are less alike, "
        f"and {_share(among_same).lower()} pairs of the same kind.</p>"
    )


def share_below(value: float, percentiles: Sequence[float]) -> int:
    """How many of a hundred measured pairs are less similar."""
    return max(0, sum(value > percentile for percentile in percentiles) - 1)


def _share(percent: int) -> str:
    return {0: "No", 100: "All"}.get(percent, f"{percent} of 100")


def _drawing(similarity: float, scale: SimilarityScale) -> str:
    """An axis from 0 to 1: where most pairs of different and of same kinds lie, and where this pair does."""

    def x(value: float) -> float:
        return 20 + 760 * min(1.0, max(0.0, value))

    def band(name: str, label: str, values: Sequence[float], y: int) -> str:
        low, high = values[5], values[95]
        return (
            f'<rect class="{name}" x="{x(low):.0f}" y="{y}" width="{x(high) - x(low):.0f}" height="28" rx="14"/>'
            f'<text x="{x((low + high) / 2):.0f}" y="{y + 19}" text-anchor="middle">{label}</text>'
        )

    here = x(similarity)
    ticks = "".join(
        f'<text x="{x(tick):.0f}" y="110" text-anchor="middle">{tick:g}</text>' for tick in (0, 0.25, 0.5, 0.75, 1)
    )
    return f"""<svg class="rl-scale" viewBox="0 0 800 116" role="img"
      aria-label="Similarity {similarity:.2f} on a scale from 0 to 1; most pairs of different kinds lie between
      {scale.different[5]:.2f} and {scale.different[95]:.2f}, most of the same kind between {scale.same[5]:.2f} and
      {scale.same[95]:.2f}">
      {band("different", "different kinds", scale.different, 14)}
      {band("same", "same kind", scale.same, 47)}
      <line class="axis" x1="20" y1="88" x2="780" y2="88"/>{ticks}
      <line class="here" x1="{here:.0f}" y1="8" x2="{here:.0f}" y2="88"/>
      <circle class="here-dot" cx="{here:.0f}" cy="8" r="6"/></svg>"""
