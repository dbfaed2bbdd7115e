// Gradio gives `element`, `trigger` and `watch`; `save`, `plainText` and `hocr` are in downloads.js.
const NEAR = 24; // pixels on the screen: a finger may miss a small word by so much
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
const CALMLY = { preventScroll: true }; // what has to be in sight is scrolled there when the focus is noticed
const OF_TEXT = "[data-do=copy], [data-do=txt], [data-do=hocr]"; // buttons that need some
let page = null, answer = null;
let boxes = null, spans = null; // of words in the picture and in the text: maps from their numbers, in reading order
let least = null; // how sure a shown word is; kept from picture to picture
let active = null; // the number of the word that is pointed at

const find = (selector) => page.querySelector(selector);
const numbered = (selector) => new Map([...page.querySelectorAll(selector)].map((each) => [+each.dataset.word, each]));
const shown = (number) => answer.words[number].confidence >= least;
const within = (value, most) => Math.max(0, Math.min(value, most));
const counted = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;
const wordAt = (target) => target?.closest?.(".rl-page [data-word]");

function begin() {
  page = element.querySelector(".rl-page");
  active = null;
  if (!page) return;
  answer = JSON.parse(page.dataset.answer);
  [boxes, spans] = [numbered(".rl-box"), numbered(".rl-seen")];
  least ??= find("input").valueAsNumber;
  find("input").value = least;
  for (const area of page.querySelectorAll(".rl-frame, .rl-text")) area.scrollTo(0, 0);
  sift();
}

// Lines with the words in them that are sure enough.
function kept() {
  return answer.lines.map((line) => ({ ...line, words: line.words.filter(shown) })).filter((line) => line.words.length);
}

// Hide words that are not, and what they leave empty.
function sift() {
  find(".rl-least b").textContent = `${Math.round(100 * least)}%`;
  for (const all of [boxes, spans]) {
    for (const [number, each] of all) each.classList.toggle("rl-out", !shown(number));
  }
  for (const list of page.querySelectorAll("li, ol")) {
    list.classList.toggle("rl-out", !list.querySelector(".rl-seen:not(.rl-out)"));
  }
  const lines = kept(), words = lines.flatMap((line) => line.words), hidden = answer.words.length - words.length;
  find(".rl-count").textContent =
    `${counted(words.length, "word")} in ${counted(lines.length, "line")}${hidden ? `, ${hidden} hidden` : ""}`;
  find(".rl-none").hidden = words.length > 0;
  for (const button of page.querySelectorAll(OF_TEXT)) button.disabled = !words.length;
  point(words.includes(active) ? active : null);
  reach(active ?? words[0]);
}

// One word of each side can be reached by Tab, the others from it by arrow keys: not two thousand times Tab.
function reach(number) {
  for (const all of [boxes, spans]) {
    for (const each of all.values()) if (each.tabIndex === 0) each.setAttribute("tabindex", -1);
    all.get(number)?.setAttribute("tabindex", 0);
  }
}

function point(number) {
  for (const all of [boxes, spans]) {
    all.get(active)?.classList.remove("rl-active");
    all.get(number)?.classList.add("rl-active");
  }
  boxes.get(active)?.setAttribute("aria-selected", false);
  boxes.get(number)?.setAttribute("aria-selected", true);
  active = number;
  tell();
}

// The note beside the frame of the word that is pointed at.
function tell() {
  const tag = find(".rl-tag"), box = boxes.get(active);
  tag.hidden = !box;
  if (!box) return;
  const word = document.createElement("b");
  word.textContent = answer.words[active].text;
  tag.replaceChildren(word, spans.get(active).getAttribute("aria-description"));
  const own = box.getBoundingClientRect(), stage = find(".rl-stage").getBoundingClientRect();
  const below = own.bottom - stage.top + 8, above = own.top - stage.top - tag.offsetHeight - 8;
  const top = below + tag.offsetHeight <= stage.height || above < 0 ? below : above;
  const left = own.left - stage.left + (own.width - tag.offsetWidth) / 2;
  tag.style.top = `${within(top, stage.height - tag.offsetHeight)}px`;
  tag.style.left = `${within(left, stage.width - tag.offsetWidth)}px`;
}

// Scroll only what the word lies in: the page must not jump below a hand that hovers.
function reveal(word) {
  const area = word.closest(".rl-text, .rl-frame"), own = word.getBoundingClientRect();
  const view = area.getBoundingClientRect();
  const past = (start, end, from, to) => (start < from ? start - from - 20 : end > to ? end - to + 20 : 0);
  area.scrollBy(past(own.left, own.right, view.left, view.right), past(own.top, own.bottom, view.top, view.bottom));
}

function say(button, text) {
  button.dataset.name ??= button.textContent;
  button.textContent = text;
  setTimeout(() => { button.textContent = button.dataset.name; }, 1500);
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(plainText(answer, kept()));
    say(button, "Copied");
  } catch { // not allowed, or not over https: marked, so that the keyboard can do it
    getSelection().selectAllChildren(find(".rl-text"));
    say(button, "Press Ctrl+C");
  }
}

function zoom(button) {
  const stage = find(".rl-stage"), times = { 2: 4, 4: 1 }[stage.style.getPropertyValue("--zoom")] ?? 2;
  stage.style.setProperty("--zoom", times);
  button.textContent = times === 4 ? "Whole picture" : "Zoom in";
  tell();
  if (active !== null) reveal(boxes.get(active));
}

const named = (ending) => page.dataset.name.replace(/\.[^.]*$/, "") + ending;
const WISHES = {
  copy,
  zoom,
  txt: () => save(`${plainText(answer, kept())}\n`, "text/plain", named(".txt")),
  hocr: () => save(hocr(answer, kept(), page.dataset.name), "text/html", named(".hocr.html")),
  json: () => save(JSON.stringify(answer, null, 2), "application/json", named(".json")),
  clear: () => trigger("clear"),
};

// A finger beside a small word means that word.
function nearest(x, y) {
  let best = null, shortest = NEAR;
  for (const box of page.querySelectorAll(".rl-box:not(.rl-out)")) {
    const { left, right, top, bottom } = box.getBoundingClientRect();
    const away = Math.hypot(Math.max(left - x, x - right, 0), Math.max(top - y, y - bottom, 0));
    if (away <= shortest) [best, shortest] = [box, away];
  }
  return best;
}

element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) WISHES[button.dataset.do](button);
  else if (event.target.closest(".rl-stage") && !wordAt(event.target)) {
    nearest(event.clientX, event.clientY)?.focus(CALMLY);
  }
});
// Not "over": that comes, too, when the page scrolls below a hand that rests.
element.addEventListener("pointermove", (event) => {
  const word = wordAt(event.target);
  if (!word || +word.dataset.word === active || event.pointerType === "touch") return; // a touch comes as focus
  point(+word.dataset.word);
  reveal((spans.get(active) === word ? boxes : spans).get(active));
});
element.addEventListener("pointerleave", () => {
  const word = wordAt(document.activeElement);
  if (page) point(word ? +word.dataset.word : null);
});
element.addEventListener("focusin", (event) => {
  const word = wordAt(event.target);
  if (!word) return;
  point(+word.dataset.word);
  reach(active);
  for (const all of [boxes, spans]) all.get(active).scrollIntoView({ block: "nearest", inline: "nearest" });
});
element.addEventListener("keydown", (event) => {
  const word = wordAt(event.target), step = STEPS[event.key];
  if (!word || !step) return;
  event.preventDefault();
  const number = +word.dataset.word, all = spans.get(number) === word ? spans : boxes;
  const open = [...all.keys()].filter(shown);
  all.get(open[within(open.indexOf(number) + step, open.length - 1)]).focus(CALMLY);
});
element.addEventListener("input", (event) => {
  least = event.target.valueAsNumber;
  sift();
});
// The field is out of sight while there is a result: what is dropped here is handed to it.
element.addEventListener("dragover", (event) => event.preventDefault());
element.addEventListener("drop", (event) => {
  event.preventDefault();
  const input = document.querySelector("#word-picture input[type=file]");
  if (!input || !event.dataTransfer.files.length) return;
  input.files = event.dataTransfer.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
});
addEventListener("resize", () => page && tell());
watch("value", begin);
