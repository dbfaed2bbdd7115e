"""Items near a picture, as the API shows them: in a search, and as evidence for a species."""

from urllib.parse import quote

from serving.schemas import NeighbourInfo
from serving.store.tables import Item


def neighbour_info(collection: str, item: Item, score: float) -> NeighbourInfo:
    """An item and how near it is."""
    image, thumbnail = picture_urls(collection, item)
    return NeighbourInfo(item=item.id, label=item.label, score=score, image_url=image, thumbnail_url=thumbnail)


def picture_urls(collection: str, item: Item) -> tuple[str | None, str | None]:
    """Where an item's picture and its thumbnail are, if there is one."""
    if item.sha256 is None:
        return None, None
    base = f"/v1/collections/{quote(collection, safe='')}/items/{item.id}"
    return f"{base}/image", f"{base}/thumbnail"
