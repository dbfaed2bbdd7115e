"""The taxonomy: found by name, made, renamed, placed, merged, split."""

from typing import Annotated

from fastapi import APIRouter, File, Path, Query, UploadFile
from starlette.concurrency import run_in_threadpool

from serving import errors
from serving.access import CurrentCaller
from serving.problems import describe
from serving.review.taxonomy import NewTaxon
from serving.review_answers import event_info, taxon_info
from serving.review_schemas import (
    LARGEST_ID,
    EventInfo,
    MergeRequest,
    NewTaxonRequest,
    PlaceRequest,
    RenameRequest,
    SkippedRow,
    SplitRequest,
    TaxaImported,
    TaxonInfo,
    TaxonList,
)
from serving.services import CurrentServices

router = APIRouter(prefix="/v1/taxa", tags=["taxa"])

TaxonId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="the taxon's number")]
MOST_TOLD = 1000  # rows that could not be taken
CHANGES = describe(errors.TaxonMissing, errors.TaxonConflict, errors.RequestInvalid, errors.DiskFull)


@router.get("", responses=describe(errors.RequestInvalid))
async def find_taxa(
    services: CurrentServices,
    name: Annotated[str, Query(max_length=200, description="part of an accepted name, synonym or common name")] = "",
    cursor: Annotated[int, Query(ge=0, le=LARGEST_ID, description="`next_cursor` of the page before")] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> TaxonList:
    """Taxa by name, a page at a time."""
    found = await run_in_threadpool(services.desk.taxa, name, limit + 1, cursor)
    page = [taxon_info(taxon) for taxon in found[:limit]]
    return TaxonList(taxa=page, next_cursor=page[-1].id if len(found) > limit else None)


@router.post("", status_code=201, responses=CHANGES)
async def make_taxon(new: NewTaxonRequest, services: CurrentServices, caller: CurrentCaller) -> TaxonInfo:
    """Make a taxon."""
    return taxon_info(await run_in_threadpool(services.desk.make_taxon, _new(new), caller.name))


@router.post(
    "/import",
    responses=describe(errors.TaxonomyBroken, errors.BodyMalformed, errors.BodyTooLarge, errors.RequestInvalid),
)
async def import_taxonomy(
    file: Annotated[UploadFile, File(description="CSV, TSV or a Darwin Core archive")],
    services: CurrentServices,
    caller: CurrentCaller,
) -> TaxaImported:
    """Take a taxonomy in; rows that cannot be taken are told, and the rest goes on."""
    report = await run_in_threadpool(services.desk.import_taxa, await file.read(), caller.name)
    skipped = [SkippedRow(line=line, reason=reason) for line, reason in report.skipped[:MOST_TOLD]]
    return TaxaImported(made=report.made, known=report.known, skipped=skipped)


@router.get("/{taxon}", responses=describe(errors.TaxonMissing, errors.RequestInvalid))
async def get_taxon(taxon: TaxonId, services: CurrentServices) -> TaxonInfo:
    """One taxon; the number of one that was merged leads to the one it is now."""
    return taxon_info(await run_in_threadpool(services.desk.taxon, taxon))


@router.get("/{taxon}/history", responses=describe(errors.RequestInvalid))
async def get_history(taxon: TaxonId, services: CurrentServices) -> list[EventInfo]:
    """What happened to a taxon."""
    return [event_info(event) for event in await run_in_threadpool(services.desk.taxon_history, taxon)]


@router.post("/{taxon}/rename", responses=CHANGES)
async def rename(taxon: TaxonId, wanted: RenameRequest, services: CurrentServices, caller: CurrentCaller) -> TaxonInfo:
    """Another accepted name; the old one becomes a synonym, items are labelled anew."""
    return taxon_info(await run_in_threadpool(services.desk.rename_taxon, taxon, wanted.name, caller.name))


@router.post("/{taxon}/place", responses=CHANGES)
async def place(taxon: TaxonId, wanted: PlaceRequest, services: CurrentServices, caller: CurrentCaller) -> TaxonInfo:
    """Another parent; votes are counted anew."""
    return taxon_info(await run_in_threadpool(services.desk.place_taxon, taxon, wanted.parent, caller.name))


@router.post("/{taxon}/merge", responses=CHANGES)
async def merge(taxon: TaxonId, wanted: MergeRequest, services: CurrentServices, caller: CurrentCaller) -> TaxonInfo:
    """Merge it into another; items, votes and decisions follow."""
    return taxon_info(await run_in_threadpool(services.desk.merge_taxa, taxon, wanted.into, caller.name))


@router.post("/{taxon}/split", responses=CHANGES)
async def split(
    taxon: TaxonId, wanted: SplitRequest, services: CurrentServices, caller: CurrentCaller
) -> list[TaxonInfo]:
    """Split it up; its items go to review."""
    parts = [_new(part) for part in wanted.parts]
    made = await run_in_threadpool(services.desk.split_taxon, taxon, parts, caller.name)
    return [taxon_info(each) for each in made]


def _new(request: NewTaxonRequest) -> NewTaxon:
    return NewTaxon(
        request.name, request.rank, request.parent, request.synonyms, request.common_names, request.gbif_key
    )
