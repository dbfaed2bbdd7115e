"""Verify: an expert says what observations show, by keyboard. The script talks to the API by itself, to be quick."""

import html
import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import gradio as gr

from ui.gallery import PHOTOGRAPHS
from ui.manage import PRIVATE

HERE = Path(__file__).parent
PARTS = ("verify_api", "verify_zoom", "verify_view", "verify_form", "verify", "verify_keys")
SCRIPT = "".join((HERE / f"{name}.js").read_text() for name in PARTS)
SAMPLES = [each.file for each in PHOTOGRAPHS if each.name in ("dahlia", "dandelions")]
RANKS = ("species", "subspecies", "variety", "form", "genus", "family", "order", "class", "unranked")
KEYS = (  # what it does, its key, as it is shown, in words
    ("new", "n", "N", "New name"),
    ("genus", "g", "G", "Genus"),
    ("unsure", "u", "U", "Unsure"),
    ("nothing", "x", "X", "Not an organism"),
    ("undo", "z", "Z", "Undo"),
    ("skip", "ArrowRight", "→", "Next"),
)


def build_tab(tabs: gr.Tabs) -> None:
    """Add the tab to the page that is being built; its buttons may lead to other `tabs`."""
    with gr.Tab("Verify", id="verify"):
        desk = gr.HTML(skeleton(SAMPLES), elem_id="verify-desk", padding=False, js_on_load=SCRIPT)
    desk.select(go, outputs=tabs, **PRIVATE)


def go(event: gr.EventData) -> gr.Tabs:
    """Another tab, as a button named it."""
    data: dict[str, str] = event._data or {}
    return gr.Tabs(selected=data.get("tab"))


def skeleton(samples: Sequence[Path]) -> str:
    """All panels, empty; the script fills and shows them. Addresses are relative, as the page may have a prefix."""
    addresses = html.escape(json.dumps([f"gradio_api/file={quote(str(file))}" for file in samples]))
    return f'<div class="rv" data-samples="{addresses}">{_TOP}{_INTRODUCTIONS}{_work()}{_empty()}</div>'


def _button(wish: str, key: str, shown: str, words: str) -> str:
    return (
        f'<button type="button" class="rv-button" data-do="{wish}" aria-keyshortcuts="{key}">'
        f'<kbd aria-hidden="true">{shown}</kbd> {words}</button>'
    )


_ERROR = '<p class="rv-error" role="alert"></p>'
_TOP = """
<div class="rv-top" hidden>
  <label>Collection <select class="rv-collection"></select></label>
  <span class="rv-count"></span>
  <p class="rv-status" role="status" aria-live="polite"></p>
  <span class="rv-me"><span class="rv-who"></span>
    <button type="button" class="rv-link" data-do="leave"></button></span>
</div>
"""
_INTRODUCTIONS = f"""
<form class="rv-introduce" data-panel="name" hidden>
  <h2 tabindex="-1">Who is verifying?</h2>
  <p>Your name stands beside what you say. It is asked for once, and kept in this browser.</p>
  <label>Your name <input type="text" name="reviewer" maxlength="100" autocomplete="name" required></label>
  {_ERROR}<button class="rv-button rv-main">Begin</button>
</form>
<form class="rv-introduce" data-panel="key" hidden>
  <h2 tabindex="-1">Sign in to verify</h2>
  <p>This service has API keys. One with the role <em>expert</em> lets you verify; its operator makes them with
    <code>readleaf keys create</code>.</p>
  <label>API key <input type="password" name="key" maxlength="200" autocomplete="current-password" required></label>
  {_ERROR}<button class="rv-button rv-main">Sign in</button>
</form>
<div class="rv-empty" data-panel="trouble" hidden>
  <h2 tabindex="-1">Something is in the way</h2>
  {_ERROR}<button type="button" class="rv-button rv-main" data-do="again">Try again</button>
</div>
"""


def _work() -> str:
    actions = "".join(_button(*key) for key in KEYS)
    ranks = "".join(f"<option>{rank}</option>" for rank in RANKS)
    return f"""
<div class="rv-work" data-panel="work" hidden>
  <div class="rv-left">
    <h2 tabindex="-1">Observation</h2>
    <div class="rv-stage">
      <div class="rv-frame"><div class="rv-picture"></div></div>
      <figure class="rv-beside" hidden>
        <div class="rv-beside-picture"></div><figcaption></figcaption>
        <button type="button" data-do="alone" aria-keyshortcuts="Escape" aria-label="Close the look-alike">×</button>
      </figure>
      <div class="rv-zoom" role="group" aria-label="Zoom">
        <button type="button" data-do="closer" aria-keyshortcuts="+" aria-label="Zoom in">+</button>
        <button type="button" data-do="away" aria-keyshortcuts="-" aria-label="Zoom out">−</button>
        <button type="button" data-do="whole" aria-keyshortcuts="0" aria-label="Whole picture">0</button>
      </div>
    </div>
    <ul class="rv-strip" aria-label="Pictures of this observation"></ul>
    <div class="rv-decide">
      {_ERROR}
      <div class="rv-actions" role="group" aria-label="What it is">{actions}</div>
    </div>
  </div>
  <div class="rv-right">
    <form class="rv-form" aria-labelledby="rv-form-title" hidden>
      <h3 id="rv-form-title">What is it?</h3>
      <label>Name <input type="text" name="name" maxlength="200" autocomplete="off" spellcheck="false" role="combobox"
        aria-expanded="false" aria-controls="rv-names" aria-autocomplete="list"></label>
      <label>Rank <select name="rank">{ranks}</select></label>
      <ul id="rv-names" role="listbox" aria-label="Names that are known" hidden></ul>
      {_ERROR}
      <div><button class="rv-button rv-main"><kbd aria-hidden="true">Enter</kbd> Send</button>
        <button type="button" class="rv-button" data-do="cancel"><kbd aria-hidden="true">Esc</kbd> Close</button>
      </div>
    </form>
    <h3>What it may be</h3>
    <p class="rv-caution"></p>
    <ol class="rv-candidates"></ol>
    <label class="rv-remark">Comment, sent with your decision
      <textarea class="rv-comment" rows="2" maxlength="2000"></textarea></label>
    <h3>About it</h3>
    <dl class="rv-facts"></dl>
    <div class="rv-said"><h3>Said so far</h3><ul class="rv-votes"></ul></div>
    <details class="rv-history"><summary>History</summary><ol></ol></details>
    <p class="rv-help">Keys: 1–9 accept a suggestion. + − 0 zoom, Shift with arrows moves the picture.
      A click on a look-alike shows it beside the observation.</p>
  </div>
</div>
"""


def _empty() -> str:
    undo = _button(*KEYS[4])
    return f"""
<div class="rv-empty" data-panel="empty" hidden>
  <h2 tabindex="-1">Nothing to verify yet</h2>
  <p class="rv-hint"></p>
  <p class="rv-skipped">You skipped <b></b>.
    <button type="button" class="rv-button" data-do="skip" aria-keyshortcuts="ArrowRight">
      <kbd aria-hidden="true">→</kbd> Show them again</button></p>
  <ul class="rv-ways">
    <li><strong>Send in an observation</strong><span>Drop pictures of one organism, see what it may be,
      and send it here.</span>
      <button type="button" class="rv-button" data-do="go" data-tab="identify">Open Identify</button></li>
    <li><strong>Import a folder</strong><span>Labelled photographs, a folder for each kind, are what observations are
      compared with.</span>
      <button type="button" class="rv-button" data-do="go" data-tab="similar">Open Find similar</button></li>
    <li><strong>Just try it</strong><span>Two photographs of the sample gallery become observations that you may decide
      on.</span><button type="button" class="rv-button" data-do="samples">Use sample pictures</button></li>
  </ul>
  {_ERROR}
  <div class="rv-actions">{undo}</div>
</div>
"""
