"""What a classifier answered, as HTML: a verdict, probabilities as bars, the picture with what was looked at."""

import base64
import html
import io

import numpy as np
from PIL import Image

from serving.schemas import ClassifyResponse, HeatMap, ImageSize, ModelInfo, Prediction
from ui.sentences import sentence

WARM = (255, 122, 0)
STRONGEST = 200  # of 255: the picture still shows through
NAMED = 8  # labels that an invitation names


def _message(text: str, kind: str = "rl-hint") -> str:
    return f'<div class="rl-result"><p class="{kind}">{text}</p></div>'


NO_MODEL = _message(
    "No model here can classify yet. <code>readleaf train classify --data FOLDER --name NAME</code> makes one of your "
    "own pictures, a folder for each kind."
)


def invite(model: ModelInfo) -> str:
    """What to do, and what the model knows."""
    known = model.labels or []
    some = ", ".join(map(html.escape, known[:: max(1, len(known) // NAMED)][:NAMED]))
    return _message(
        f"Drop a picture, paste one, or take one with the camera. The model knows {len(known):,} kinds and nothing "
        f"else: {some} …"
    )


def refusal(reason: str) -> str:
    """Why there is no answer."""
    return _message(sentence(reason), "rl-error")


def show(answer: ClassifyResponse, model: ModelInfo, address: str) -> str:
    """The whole result; `address` is where the browser finds the picture."""
    bars = "".join(map(_bar, answer.predictions))
    looked = _looked(answer.image, answer.heatmap, address) if answer.heatmap else ""
    return (
        f'<div class="rl-result" role="status">{_verdict(answer, model)}<div class="rl-bars">{bars}</div>{looked}</div>'
    )


def _verdict(answer: ClassifyResponse, model: ModelInfo) -> str:
    best = answer.predictions[0]
    name, often = html.escape(best.label), round(100 * best.probability)
    if answer.unsure:
        return (
            f"<h2>Unsure; perhaps {name}</h2><p>Nothing it knows is probable enough to rely on. It may be another of "
            f"those below, or none of the {len(model.labels or ()):,} kinds that this model knows: look for yourself, "
            "or try a closer or sharper picture.</p>"
        )
    return (
        f"<h2>{name}</h2><p>Of a hundred answers that are as sure as this one, about {often} are right. It knows "
        f"{len(model.labels or ()):,} kinds; of anything else it cannot say that it is none of them.</p>"
    )


def _bar(prediction: Prediction) -> str:
    share = "< 1%" if 0 < prediction.probability < 0.005 else f"{prediction.probability:.0%}"
    return (
        f'<div class="rl-bar"><span>{html.escape(prediction.label)}</span>'
        f'<meter min="0" max="1" value="{prediction.probability:.3f}"></meter><b>{html.escape(share)}</b></div>'
    )


def _looked(image: ImageSize, heat: HeatMap, address: str) -> str:
    """The picture, and over the part that was looked at how much each place speaks for the answer."""
    part, label = heat.region, html.escape(heat.label)
    place = (
        f"left:{100 * part.left / image.width:.3f}%;top:{100 * part.top / image.height:.3f}%;"
        f"width:{100 * part.width / image.width:.3f}%;height:{100 * part.height / image.height:.3f}%"
    )
    return (
        '<figure class="rl-looked"><label><input type="checkbox" checked> Show what speaks for '
        f"{label}</label>"
        f'<div style="aspect-ratio:{image.width}/{image.height};max-width:{60 * image.width / image.height:.1f}vh">'
        f'<img src="{html.escape(address)}" alt="Your picture">'
        f'<img class="rl-heat" style="{place}" src="{_drawn(heat)}" alt="Warm where it looks like {label}">'
        "</div></figure>"
    )


def _drawn(heat: HeatMap) -> str:
    """A small picture of the grid, transparent where nothing speaks for the label; browsers enlarge it smoothly."""
    values = np.asarray(heat.values)
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = WARM
    pixels[..., 3] = np.clip(values, 0, 1) * STRONGEST
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
