// Gradio gives `element` and `trigger`; verify_api, _zoom, _view and _form stand before this, verify_keys after it.
const MOST_SKIPPED = 500, MOST_UNDONE = 50;
const root = element.querySelector(".rv");
const find = (selector) => root.querySelector(selector);
const all = (selector) => [...root.querySelectorAll(selector)];

let session = null, collection = null;
let current = null, chosen = 0; // the observation that is held, and the candidate that was pointed at last
let skipped = recall("sessionStorage", "skipped", []);
let done = recall("sessionStorage", "done", 0);
let busy = false, panel = "", asked = 0;
let quiet = Promise.resolve(); // what the page does by itself
const seen = () => element.isConnected && root.checkVisibility();
const zoom = zoomIn(find(".rv-frame"), find(".rv-picture"));
const form = nameForm(find(".rv-form"), { send: (said) => attempt(() => vote(said)), close: closeForm, changed: keepDraft });

// One panel at a time: who are you, an observation, or nothing to do.
function turn(to) {
  panel = to;
  for (const each of all("[data-panel]")) each.hidden = each.dataset.panel !== to;
  find(".rv-top").hidden = ["name", "key", "trouble", ""].includes(to);
}
function say(text) { find(".rv-status").textContent = text; }
function fail(text) { for (const each of all(".rv-error")) each.textContent = sentence(text); }

// One thing at a time: a key pressed twice must not decide on what nobody has seen.
async function attempt(work) {
  if (busy) return;
  busy = true;
  root.setAttribute("aria-busy", "true");
  fail("");
  await quiet;
  await settle(work);
  busy = false;
  root.removeAttribute("aria-busy");
}
// What nobody asked for gives way to what somebody wishes, which then waits for it.
function byItself(work) {
  if (!busy) quiet = quiet.then(() => settle(work));
}
async function settle(work) {
  try {
    await work();
  } catch (error) {
    if (error instanceof Refused) await mend(error);
    else console.error(error); // a mistake of ours must not stop the keys
  }
}
async function mend(error) {
  if (error.status === 401) {
    turn("key");
  } else if (error.kind === "lease-missing" && current) {
    const lost = current.id;
    try {
      await next("");
    } catch (again) {
      return fail(again.message);
    }
    return fail(current?.id === lost
      ? `your hold on observation ${lost} had run out and is yours again: please repeat it`
      : `your hold on observation ${lost} had run out, and somebody else may have it: here is the next one`);
  }
  if (!panel) turn("trouble");
  fail(error.message);
}

// Who is asking
async function begin() {
  session = await call("GET", "v1/session");
  reviewer = session.keys ? "" : recall("localStorage", "reviewer", "");
  if (session.keys && !session.name) return turn("key");
  if (!session.keys && !reviewer) return turn("name");
  find(".rv-who").textContent = session.name ?? reviewer;
  find("[data-do=leave]").textContent = session.keys ? "Sign out" : "Not you?";
  await fillCollections();
  await next("");
}
async function introduce(text) {
  if (session && !session.keys) {
    remember("localStorage", "reviewer", text.trim());
  } else {
    await call("POST", "v1/session", { key: text.trim() });
  }
  for (const field of all("[data-panel=name] input, [data-panel=key] input")) field.value = "";
  await begin();
  head()?.focus({ preventScroll: true });
}
async function leave() {
  await release();
  current = null;
  if (session.keys) await call("DELETE", "v1/session");
  else remember("localStorage", "reviewer", null);
  await begin();
  find(`[data-panel=${panel}] input`)?.focus();
}

// What to look at
async function fillCollections() {
  const names = await collections(), select = find(".rv-collection");
  const wanted = collection ?? recall("localStorage", "collection", null);
  collection = names.includes(wanted) ? wanted : names[0] ?? null;
  select.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
  if (collection !== null) select.value = collection;
  select.closest("label").hidden = !names.length;
}
async function change(name) {
  await release();
  [current, collection, skipped] = [null, name, []];
  remember("localStorage", "collection", name);
  await next("");
}
async function next(said) {
  asked = Date.now();
  remember("sessionStorage", "skipped", skipped);
  const answer = collection === null ? null
    : await call("POST", "v1/review/next", { collection, skip: skipped.slice(-MOST_SKIPPED) });
  if (answer) return show(answer.observation, answer.waiting, said);
  await rest(said);
}
async function release() {
  if (current) await call("DELETE", `v1/observations/${current.id}/lease`).catch(() => null); // it runs out by itself
}

// Nothing waits: because nothing ever came, because all is done, or because the rest was skipped.
async function rest(said) {
  current = null;
  const first = collection === null ? null
    : await call("GET", `v1/observations?limit=1&collection=${encodeURIComponent(collection)}`);
  const any = first?.observations.length > 0;
  const title = skipped.length ? "Nothing else waits" : any ? "All done" : "Nothing to verify yet";
  if (panel !== "empty" || said) say(said && `${said} ${title}.`);
  find("[data-panel=empty] h2").textContent = title;
  find(".rv-skipped").hidden = !skipped.length;
  find(".rv-skipped b").textContent = counted(skipped.length, "observation");
  find(".rv-hint").textContent = any
    ? "Every observation here that waits for you has been looked at. New ones appear by themselves."
    : "An observation is one to five pictures of one organism. The models suggest what it is, an expert says what it is, "
      + "and from then on its pictures are found and compared with.";
  count(null);
  const arrived = panel !== "empty";
  turn("empty");
  if (said && arrived) head()?.focus({ preventScroll: true });
}
function count(waiting) {
  const place = [waiting ? `${waiting} left` : "none left", done ? `${done} done` : ""];
  find(".rv-count").textContent = place.filter(Boolean).join(" · ");
  offerUndo();
}
function offerUndo() {
  for (const button of all("[data-do=undo]")) button.setAttribute("aria-disabled", String(!undoable().length));
}
const head = () => (panel ? find(`[data-panel=${panel}] h2`) : null);

function show(observation, waiting, said) {
  const same = current?.id === observation.id && panel === "work";
  [current, chosen] = [observation, 0];
  turn("work");
  count(waiting);
  if (same) return;
  const predictions = observation.identification?.predictions ?? [];
  const images = observation.images.length;
  find("[data-panel=work] h2").textContent = `Observation ${observation.id}`;
  find(".rv-strip").replaceChildren(...(images > 1 ? strip(observation) : []));
  find(".rv-caution").textContent = caution(observation.identification);
  find(".rv-candidates").replaceChildren(...predictions.slice(0, 9).map(candidate));
  find(".rv-facts").replaceChildren(...circumstances(observation));
  find(".rv-votes").replaceChildren(...standing(observation));
  find(".rv-said").hidden = !find(".rv-votes").children.length;
  find(".rv-history ol").replaceChildren(...observation.history.map((event) => told(event, observation)));
  find(".rv-history").open = false;
  closeBeside();
  look(0);
  const draft = recall("sessionStorage", `draft.${observation.id}`, {});
  find(".rv-comment").value = draft.comment ?? "";
  form.hide();
  say(said && `${said} ${waiting} left.`);
  if (said && seen()) {
    head().focus({ preventScroll: true });
    if (root.getBoundingClientRect().top < 0) root.scrollIntoView({ block: "start" });
  }
  if (draft.form && seen()) form.open(draft.form.title, draft.form.name, draft.form.rank);
}
function look(place) {
  const image = current.images[place];
  const parts = [`Observation ${current.id}`, `picture ${place + 1} of ${current.images.length}`, image.organ];
  find(".rv-picture").replaceChildren(photograph(image, parts.filter(Boolean).join(", ")));
  for (const [number, button] of all(".rv-strip button").entries()) {
    button.setAttribute("aria-pressed", String(number === place));
  }
  zoom.reset();
}
function beside({ image, thumbnail, name, score }) {
  const shown = photograph({ image_url: image, thumbnail_url: thumbnail }, `${name}, a look-alike`);
  find(".rv-beside-picture").replaceChildren(shown);
  find(".rv-beside figcaption").textContent = `${name} · ${score}`;
  find(".rv-beside").hidden = false;
  zoom.reset();
}
function closeBeside() {
  find(".rv-beside").hidden = true;
  zoom.reset();
}

// What is typed stays, whatever happens, until it is sent.
function keepDraft() {
  if (!current) return;
  const draft = { comment: find(".rv-comment").value, form: form.draft };
  remember("sessionStorage", `draft.${current.id}`, draft.comment || draft.form ? draft : null);
}
function openForm(title, name, rank) {
  form.open(title, name, rank);
  keepDraft();
}
function closeForm() {
  form.hide();
  keepDraft();
  head()?.focus({ preventScroll: true });
}

// What an expert says
const OUTCOMES = {
  verified: (answer) => `Verified as ${answer.taxon?.name ?? "a new name"}.`,
  rejected: () => "Set aside: not an organism.",
  uncertain: () => "Set aside as unsure.",
  needs_review: () => "Your vote is kept; others have to agree.",
};
const undoable = () => recall("localStorage", "undo", []).filter((each) => each.who === (session?.name ?? reviewer));

async function vote(said) {
  if (!current) return;
  const comment = find(".rv-comment").value.trim();
  const answer = await call("POST", `v1/observations/${current.id}/votes`, { ...said, comment });
  remember("sessionStorage", `draft.${answer.id}`, null);
  const own = { id: answer.id, collection: answer.collection, who: session.name ?? reviewer };
  remember("localStorage", "undo", [...recall("localStorage", "undo", []), own].slice(-MOST_UNDONE));
  remember("sessionStorage", "done", (done += 1));
  current = null;
  await next(OUTCOMES[answer.status](answer));
}
async function accept(place) {
  const prediction = current?.identification?.predictions[place];
  if (!prediction) return fail(current?.identification ? `there is no suggestion ${place + 1}` : caution(null));
  await vote(prediction.taxon ? { kind: "taxon", taxon_id: prediction.taxon.id }
    : { kind: "new_taxon", name: prediction.label, rank: "unranked" });
}
async function voteGenus() {
  const candidates = current.identification?.predictions ?? [], taxon = candidates[chosen]?.taxon ?? null;
  const genus = await genusOf(taxon);
  if (genus) return vote({ kind: "taxon", taxon_id: genus.id });
  const binomial = taxon?.name.match(/^(\p{Lu}\p{Ll}+) \p{Ll}/u); // of Quercus robur, Quercus
  openForm("Which genus is it?", binomial?.[1] ?? "", "genus");
}
async function undo() {
  const last = undoable().at(-1);
  if (!last) return fail("there is nothing to undo");
  const forget = () => remember("localStorage", "undo",
    recall("localStorage", "undo", []).filter((each) => each.id !== last.id || each.who !== last.who));
  let answer;
  try {
    answer = await call("POST", `v1/observations/${last.id}/undo`);
  } catch (error) {
    if (error.status === 404) forget(); // taken back elsewhere
    offerUndo();
    throw error;
  }
  forget();
  if (current?.id !== last.id) await release(); // what was taken back is held again
  remember("sessionStorage", "done", (done = Math.max(0, done - 1)));
  skipped = skipped.filter((each) => each !== last.id);
  [current, collection] = [null, last.collection];
  find(".rv-collection").value = collection;
  const still = answer.status === "needs_review" ? "" : ` It stays ${answer.status}, as others say so.`;
  await next(`Your vote on observation ${last.id} is taken back.${still}`);
}
async function skip() {
  if (current) skipped.push(current.id);
  else skipped = [];
  current = null;
  await next(skipped.length ? "Skipped." : "");
}

// Observations to try it with: two photographs that the page has anyway.
async function trySamples() {
  if (collection === null) collection = (await call("POST", "v1/collections", { name: "samples" })).name;
  for (const address of JSON.parse(root.dataset.samples)) {
    const body = new FormData();
    body.set("collection", collection);
    body.set("notes", "a sample picture of this page");
    body.append("images", await (await fetch(address)).blob(), "sample.jpg");
    await call("POST", "v1/observations", body);
  }
  await fillCollections();
  await next("Two sample pictures wait for your word.");
}
