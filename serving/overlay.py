"""A picture with the words that were found in it: outlines at their angle, and where each begins."""

from pathlib import Path

from PIL import ImageDraw

from serving.images import ImageLimits, decode
from serving.pipelines.read import PageText
from serving.pipelines.upload import Upload

INK, EDGE = (255, 210, 0), (20, 20, 20)  # a light line in a dark one can be seen on anything


def draw_overlay(upload: Upload, limits: ImageLimits, page: PageText, to: Path) -> None:
    """Write a PNG of the upright picture with all words outlined, and a dot at the top left of each."""
    picture = decode(upload.data, limits, name=upload.name)
    pen = ImageDraw.Draw(picture)
    line = max(1, round(max(picture.size) / 800))
    for word in page.words:
        corners = [(float(x), float(y)) for x, y in word.polygon]
        for ink, width in ((EDGE, 3 * line), (INK, line)):
            pen.line([*corners, corners[0]], fill=ink, width=width, joint="curve")
        x, y = corners[0]
        pen.ellipse((x - 2 * line, y - 2 * line, x + 2 * line, y + 2 * line), fill=INK, outline=EDGE)
    picture.save(to)
