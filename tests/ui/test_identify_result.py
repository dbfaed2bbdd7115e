import pytest

from serving.review_schemas import IdentifyResponse, ObservationInfo
from serving.schemas import CollectionInfo, LabelCount
from ui import identify_result

TAXON = {
    "id": 4, "name": "<Quercus> robur", "rank": "species", "parent": None, "synonyms": [],
    "common_names": ["oak & co"], "gbif_key": None,
}  # fmt: skip
NEAR = {
    "item": 7, "label": "<Quercus> robur", "score": 0.934,
    "image_url": "/v1/collections/a%20b/items/7/image", "thumbnail_url": "/v1/collections/a%20b/items/7/thumbnail",
}  # fmt: skip
FAR = {"item": 8, "label": "<Quercus> robur", "score": 0.8, "image_url": None, "thumbnail_url": None}


def answer(score=0.82, *, rejected=False, classifier=0.9, evidence=(NEAR, FAR), predictions=None):
    first = {
        "taxon": TAXON, "label": "<Quercus> robur", "score": score, "neighbours": 0.74, "classifier": classifier,
        "evidence": list(evidence),
    }  # fmt: skip
    second = {"taxon": None, "label": "ash", "score": 0.1, "neighbours": 0.1, "classifier": None, "evidence": []}
    return IdentifyResponse.model_validate(
        {
            "predictions": [first, second] if predictions is None else predictions,
            "rejected": rejected,
            "reason": "nothing here looks enough like it" if rejected else None,
            "models": [],
        }
    )


def test_a_candidate_shows_what_speaks_for_it_apart():
    shown = identify_result.show(answer())
    assert "<h2>Probably &lt;Quercus&gt; robur</h2>" in shown
    assert "<b>82%</b>" in shown
    assert 'style="width:82.0%"' in shown
    assert "look-alikes 74% · classifier 90% · 1 without their pictures" in shown
    assert "species · oak &amp; co" in shown
    assert "<Quercus>" not in shown


def test_evidence_is_found_relative_to_the_page():
    shown = identify_result.show(answer())
    assert 'href="v1/collections/a%20b/items/7/image"' in shown
    assert 'src="v1/collections/a%20b/items/7/thumbnail"' in shown
    assert 'alt="&lt;Quercus&gt; robur, look-alike 1"' in shown
    assert shown.count("<img") == 1


def test_a_label_that_the_classifier_does_not_know_has_no_probability():
    assert "classifier" not in identify_result.show(answer(classifier=None))


@pytest.mark.parametrize(("score", "word"), [(0.6, "Probably"), (0.59, "Perhaps")])
def test_how_sure_the_verdict_sounds(score, word):
    assert f"<h2>{word} " in identify_result.show(answer(score))


def test_none_of_these_gives_the_reason_and_the_nearest():
    shown = identify_result.show(answer(rejected=True))
    assert "<h2>None of these</h2>" in shown
    assert "Nothing here looks enough like it. The nearest all the same:" in shown
    assert "&lt;Quercus&gt; robur" in shown


def test_nothing_to_say():
    assert "No suggestion" in identify_result.show(answer(predictions=[]))
    assert "nearest" not in identify_result.show(answer(predictions=[], rejected=True))


def test_few_candidates_are_shown():
    many = [
        {"taxon": None, "label": f"kind {n}", "score": 0.1, "neighbours": 0.1, "classifier": None, "evidence": []}
        for n in range(9)
    ]
    assert identify_result.show(answer(predictions=many)).count("<strong>") == identify_result.SHOWN


@pytest.mark.parametrize(("items", "words"), [(1200, "1,200 pictures of 1 kinds in a &lt;b&gt;"), (0, "is empty")])
def test_the_invitation_says_what_it_is_compared_with(items, words):
    labels = [LabelCount(label="oak", items=items)] if items else []
    known = CollectionInfo(name="a <b>", description="", items=items, outdated=0, labels=labels)
    assert words in identify_result.invite(known)


def test_what_was_sent_has_a_number():
    made = ObservationInfo.model_validate(
        {
            "id": 12, "collection": "my <leaves>", "status": "needs_review", "taxon": None, "images": [],
            "observed": None, "latitude": None, "longitude": None, "place": "", "observer": "", "notes": "",
            "submitter": "", "identification": None, "votes": [], "history": [], "lease": None,
            "created": "2026-05-14T10:00:00Z", "decided": None,
        }
    )  # fmt: skip
    told = identify_result.sent(made)
    assert "this is observation 12." in told
    assert "my &lt;leaves&gt;" in told
