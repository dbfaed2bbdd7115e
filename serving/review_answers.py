"""What the review found, as the API shows it."""

from collections.abc import Mapping
from typing import Any

from serving.manifest import Manifest
from serving.neighbour_answers import neighbour_info
from serving.pipelines.observe import Looked
from serving.pipelines.vote import score_of
from serving.review.desk import Seen
from serving.review_schemas import (
    EventInfo,
    IdentifyResponse,
    LeaseInfo,
    ObservationImageInfo,
    ObservationInfo,
    TaxonInfo,
    TaxonPrediction,
    VoteInfo,
)
from serving.schemas import ModelRef
from serving.store.review_tables import Event, Taxon, Vote

# What happened to an observation and would tell a blind reviewer what others think.
TELLING = ("voted", "decided", "withdrawn")


def taxon_info(taxon: Taxon) -> TaxonInfo:
    """A taxon."""
    return TaxonInfo(
        id=taxon.id,
        name=taxon.name,
        rank=taxon.rank,
        parent=taxon.parent_id,
        synonyms=taxon.synonyms,
        common_names=taxon.common_names,
        gbif_key=taxon.gbif_key,
    )


def event_info(event: Event) -> EventInfo:
    """An event."""
    return EventInfo(number=event.number, kind=event.kind, who=event.who, facts=event.facts, at=event.at)


def identify_response(looked: Looked, collection: str, taxa: Mapping[str, Taxon]) -> IdentifyResponse:
    """What an organism probably is; `taxa` are those of labels, as far as there are any."""
    predictions = [
        TaxonPrediction(
            taxon=taxon_info(taxa[each.label]) if each.label in taxa else None,
            label=each.label,
            score=each.score,
            neighbours=each.neighbours,
            classifier=each.classifier,
            evidence=[neighbour_info(collection, near.item, score_of(near.similarity)) for near in each.evidence],
        )
        for each in looked.found.suggestions
    ]
    return IdentifyResponse(
        predictions=predictions,
        rejected=looked.found.rejected,
        reason=looked.found.reason,
        models=[_model(manifest) for manifest in (looked.embedder, looked.classifier) if manifest is not None],
    )


def kept_identification(looked: Looked, taxa: Mapping[str, Taxon]) -> dict[str, Any]:
    """An identification as the database keeps it: taxa and items by number, so that it follows their changes."""
    return {
        "predictions": [
            {
                "taxon": taxa[each.label].id,
                "score": each.score,
                "neighbours": each.neighbours,
                "classifier": each.classifier,
                "evidence": [[near.item.id, score_of(near.similarity)] for near in each.evidence],
            }
            for each in looked.found.suggestions
        ],
        "rejected": looked.found.rejected,
        "reason": looked.found.reason,
        "model": looked.embedder.sha256,
        "models": [
            _model(manifest).model_dump() for manifest in (looked.embedder, looked.classifier) if manifest is not None
        ],
    }


def observation_info(seen: Seen, reader: str = "") -> ObservationInfo:
    """An observation as `reader` may see it."""
    row = seen.observation
    hidden = (
        seen.blind
        and row.status == "needs_review"
        and not any(vote.who == reader and not vote.withdrawn for vote in seen.votes)
    )
    votes = [vote for vote in seen.votes if not hidden or vote.who == reader]
    events = [event for event in seen.events if not hidden or event.kind not in TELLING or event.who == reader]
    return ObservationInfo(
        id=row.id,
        collection=seen.collection,
        status=row.status,
        taxon=_taxon(seen, row.taxon_id),
        images=[_image(seen, place) for place in range(len(seen.images))],
        observed=row.observed,
        latitude=row.latitude,
        longitude=row.longitude,
        place=row.place,
        observer=row.observer,
        notes=row.notes,
        submitter=row.submitter,
        identification=None if hidden else _identification(seen),
        votes=[_vote(seen, vote) for vote in votes],
        history=[event_info(event) for event in events],
        lease=None if seen.lease is None else LeaseInfo(who=seen.lease.who, expires=seen.lease.expires),
        created=row.created,
        decided=row.decided,
    )


def _identification(seen: Seen) -> IdentifyResponse:
    kept = seen.observation.identification
    predictions = []
    for each in kept["predictions"]:
        taxon = seen.taxa[each["taxon"]]
        evidence = [
            neighbour_info(seen.collection, item, score)
            for number, score in each["evidence"]
            if (item := seen.evidence.get(number)) is not None
        ]
        predictions.append(
            TaxonPrediction(
                taxon=taxon_info(taxon),
                label=taxon.name,
                score=each["score"],
                neighbours=each.get("neighbours", 0.0),
                classifier=each.get("classifier"),
                evidence=evidence,
            )
        )
    return IdentifyResponse(
        predictions=predictions,
        rejected=kept["rejected"],
        reason=kept["reason"],
        models=[ModelRef(**each) for each in kept.get("models", [])],
    )


def _image(seen: Seen, place: int) -> ObservationImageInfo:
    image = seen.images[place]
    base = f"/v1/observations/{seen.observation.id}/images/{place + 1}"
    return ObservationImageInfo(
        image_url=base,
        thumbnail_url=f"{base}/thumbnail",
        width=image.width,
        height=image.height,
        organ=image.organ,
        item=image.item_id,
    )


def _vote(seen: Seen, vote: Vote) -> VoteInfo:
    return VoteInfo(
        id=vote.id,
        who=vote.who,
        kind=vote.kind,
        taxon=_taxon(seen, vote.taxon_id),
        comment=vote.comment,
        withdrawn=vote.withdrawn,
        created=vote.created,
    )


def _taxon(seen: Seen, number: int | None) -> TaxonInfo | None:
    return None if number is None else taxon_info(seen.taxa[number])


def _model(manifest: Manifest) -> ModelRef:
    return ModelRef(name=manifest.name, version=manifest.version, sha256=manifest.sha256)
