// What buttons, keys and time do.
const RENEW = 4 * 60_000, LOOK = 20_000; // milliseconds: a lease lasts ten minutes; an empty queue is asked again
const WISHES = {
  accept: (button) => accept(Number(button.dataset.place)),
  new: () => current && openForm("What is it?", "", "species"),
  genus: () => current && voteGenus(),
  unsure: () => vote({ kind: "cannot_tell" }),
  nothing: () => vote({ kind: "not_an_organism" }),
  skip, undo, leave,
  again: begin,
  samples: trySamples,
};
const AT_ONCE = { // these ask the service nothing, so they need not wait
  picture: (button) => look(Number(button.dataset.place)),
  beside: (button) => beside(button.dataset),
  alone: closeBeside,
  cancel: closeForm,
  closer: zoom.closer, away: zoom.away, whole: zoom.reset,
  go: (button) => trigger("select", { tab: button.dataset.tab }),
};
const KEYS = { n: "new", g: "genus", u: "unsure", x: "nothing", z: "undo", ArrowRight: "skip" };
const VIEWS = { "+": zoom.closer, "=": zoom.closer, "-": zoom.away, 0: zoom.reset, Escape: closeBeside };
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const TYPING = "input, textarea, select, [contenteditable]";

root.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]"), wish = button?.dataset.do;
  if (AT_ONCE[wish]) AT_ONCE[wish](button);
  else if (wish) attempt(() => WISHES[wish](button));
});
root.addEventListener("focusin", (event) => {
  const card = event.target.closest(".rv-candidate");
  if (card) chosen = Number(card.dataset.place);
});
root.addEventListener("submit", (event) => {
  if (!event.target.matches(".rv-introduce")) return;
  event.preventDefault();
  const text = event.target.querySelector("input").value;
  if (text.trim()) attempt(() => introduce(text));
});
find(".rv-comment").addEventListener("input", keepDraft);
find(".rv-comment").addEventListener("keydown", (event) => {
  if (event.key === "Escape") head().focus({ preventScroll: true });
});
find(".rv-collection").addEventListener("change", (event) => attempt(() => change(event.target.value)));

document.addEventListener("keydown", (event) => {
  if (!seen() || event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
  if (event.target.closest?.(TYPING) || !["work", "empty"].includes(panel)) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key, view = VIEWS[key];
  if (panel === "work" && event.shiftKey && MOVES[key]) {
    event.preventDefault();
    zoom.move(...MOVES[key]);
  } else if (panel === "work" && view) {
    event.preventDefault();
    view();
  } else if (!event.repeat && !event.shiftKey && (KEYS[key] || /^[1-9]$/.test(key))) {
    event.preventDefault();
    attempt(() => (KEYS[key] ? WISHES[KEYS[key]]() : current && accept(Number(key) - 1)));
  }
});

async function lookAgain() {
  asked = Date.now();
  await fillCollections();
  await next("");
}

// While somebody looks, what they hold stays theirs, and an empty queue fills by itself.
function watchOver() {
  if (!element.isConnected) return clearInterval(ticking);
  if (!seen() || document.hidden || busy) return;
  const age = Date.now() - asked;
  if (panel === "work" && current && age > RENEW) {
    asked = Date.now();
    byItself(() => call("PUT", `v1/observations/${current.id}/lease`));
  } else if (panel === "empty" && age > LOOK && !skipped.length) {
    byItself(lookAgain);
  }
}
const ticking = setInterval(watchOver, 5_000);
document.addEventListener("visibilitychange", watchOver);
new IntersectionObserver(() => {
  document.body.classList.toggle("rv-wide", seen());
  if (seen() && panel === "empty" && !skipped.length) byItself(lookAgain);
}).observe(root);
attempt(begin);
