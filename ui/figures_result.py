"""How a review goes, as HTML: numbers, and bars drawn with plain elements."""

import html
from urllib.parse import quote

from serving.review_schemas import AccuracyInfo, FiguresInfo
from ui.sentences import sentence

STATUSES = {
    "needs_review": "wait for an expert",
    "verified": "verified",
    "uncertain": "uncertain",
    "rejected": "not an organism",
}


def _message(text: str, kind: str = "rl-hint") -> str:
    return f'<div class="rl-result"><p class="{kind}">{text}</p></div>'


NO_COLLECTION = _message("There is no collection yet. Make one under Find similar.")


def refusal(reason: str) -> str:
    """Why there is no answer."""
    return _message(sentence(reason), "rl-error")


def show(found: FiguresInfo, collection: str) -> str:
    """All figures of a collection, or what to do if there are none."""
    name = html.escape(collection)
    if not sum(found.statuses.values()):
        return _message(
            f"No observation was sent to {name} yet. Send one under Identify, decide it under Verify, and come back."
        )
    parts = (_numbers(found), _statuses(found), _accuracy(found), _confusions(found), _exports(collection))
    return f'<div class="rl-result rl-figures" role="status">{"".join(parts)}</div>'


def _numbers(found: FiguresInfo) -> str:
    pace = "–" if found.decisions_an_hour is None else f"{found.decisions_an_hour:.0f}"
    alpha = "–" if found.agreement is None else f"{found.agreement:.2f}"
    cells = (
        (f"{found.waiting:,}", "wait in the queue"),
        (f"{found.decisions_last_day:,}", "decided in the last day"),
        (pace, "decisions an hour, in hours with any"),
        (f"{found.votes:,}", f"votes of {found.people} {'person' if found.people == 1 else 'people'}"),
        (alpha, f"agreement (Krippendorff's alpha) on {found.compared:,} with two votes and more"),
    )
    shown = "".join(f"<div><dt>{html.escape(words)}</dt><dd>{value}</dd></div>" for value, words in cells)
    return f'<dl class="rl-numbers">{shown}</dl>'


def _statuses(found: FiguresInfo) -> str:
    total = sum(found.statuses.values())
    bars = "".join(
        _bar(words, count / total, f"{count:,}")
        for status, words in STATUSES.items()
        if (count := found.statuses.get(status, 0))
    )
    return f'<h3>What became of {total:,} observations</h3><div class="rl-bars">{bars}</div>'


def _accuracy(found: FiguresInfo) -> str:
    return (
        "<h3>How often the models are right</h3>"
        f"{_interval('the random share', found.accuracy)}{_interval('all that is decided', found.biased_accuracy)}"
        '<p class="rl-hint">The random share is chosen when observations come, whatever the models think of them, so '
        "it tells how good they are. Of the others the doubtful ones are decided first, so they look worse "
        "than they are. The light bar holds the true share in 95 of 100 cases.</p>"
    )


def _interval(words: str, found: AccuracyInfo) -> str:
    if found.share is None or found.low is None or found.high is None:
        return f"<p>On {words}: nothing is verified yet.</p>"
    left, width = 100 * found.low, 100 * (found.high - found.low)
    told = f"{found.share:.0%} on {words}, between {found.low:.0%} and {found.high:.0%}"
    return (
        f'<p>{found.share:.0%} on {words} ({found.right} of {found.total})</p><div class="rl-interval" role="img" '
        f'aria-label="{told}"><i style="left:{left:.1f}%;width:{width:.1f}%"></i>'
        f'<b style="left:{100 * found.share:.1f}%"></b></div>'
    )


def _confusions(found: FiguresInfo) -> str:
    if not found.confusions:
        return ""
    most = found.confusions[0].count
    bars = "".join(
        _bar(f"{each.predicted} → {each.decided}", each.count / most, str(each.count)) for each in found.confusions
    )
    return f'<h3>What experts correct most</h3><div class="rl-bars rl-wide">{bars}</div>'


def _exports(collection: str) -> str:
    name = html.escape(quote(collection, safe=""))
    return (
        f'<p><a href="v1/exports/dataset?collection={name}" download>Download a training set</a> · '
        f'<a href="v1/exports/darwin-core?collection={name}" download>Download a Darwin Core archive</a></p>'
    )


def _bar(words: str, share: float, count: str) -> str:
    escaped = html.escape(words)
    return (
        f'<div class="rl-bar"><span title="{escaped}">{escaped}</span>'
        f'<meter min="0" max="1" value="{share:.3f}" aria-label="{escaped}: {count}"></meter><b>{count}</b></div>'
    )
