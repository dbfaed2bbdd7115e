"""What the Figures tab shows."""

from serving.review_schemas import AccuracyInfo, ConfusionInfo, FiguresInfo
from ui.figures_result import show

NOTHING = AccuracyInfo(right=0, total=0, silent=0, left_out=0, share=None, low=None, high=None)


def figures(**known):
    empty = {
        "statuses": {"needs_review": 0, "verified": 0, "uncertain": 0, "rejected": 0},
        "waiting": 0,
        "decisions_last_day": 0,
        "decisions_an_hour": None,
        "votes": 0,
        "people": 0,
        "compared": 0,
        "agreement": None,
        "accuracy": NOTHING,
        "biased_accuracy": NOTHING,
        "confusions": [],
    }
    return FiguresInfo(**empty | known)


def test_nothing_yet_says_what_to_do():
    shown = show(figures(), "my <garden>")
    assert "my &lt;garden&gt;" in shown
    assert "Send one under Identify" in shown


def test_numbers_bars_and_confusions():
    share = AccuracyInfo(right=9, total=10, silent=0, left_out=1, share=0.9, low=0.6, high=0.98)
    shown = show(
        figures(
            statuses={"needs_review": 3, "verified": 10, "uncertain": 1, "rejected": 0},
            waiting=3,
            votes=11,
            people=1,
            agreement=0.81,
            compared=5,
            accuracy=share,
            confusions=[ConfusionInfo(predicted="oak", decided="<elm>", count=4)],
        ),
        "a/b",
    )
    assert "What became of 14 observations" in shown
    assert "not an organism" not in shown  # nothing became of it
    assert "votes of 1 person" in shown
    assert "0.81" in shown
    assert "90% on the random share (9 of 10)" in shown
    assert 'style="left:60.0%;width:38.0%"' in shown
    assert "On all that is decided: nothing is verified yet." in shown
    assert "oak → &lt;elm&gt;" in shown
    assert "v1/exports/dataset?collection=a%2Fb" in shown
