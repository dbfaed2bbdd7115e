// An observation as elements; every text of it becomes a text node, never markup.
const percent = (share) => `${Math.round(100 * share)} %`;
const counted = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const sentence = (text) => (text ? `${capital(text).replace(/\.$/, "")}.` : "");
const fromPage = (address) => address.replace(/^\/+/, ""); // the page may stand behind a prefix
const moment = (text) => new Date(text).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

const SAYS = {
  cannot_tell: "cannot tell",
  not_an_organism: "not an organism",
};
const nameOf = (vote) => vote.taxon?.name ?? SAYS[vote.kind] ?? vote.kind;

// Browsers know no TIFF: they get the thumbnail then.
function photograph(image, alt) {
  const shown = make("img", { src: fromPage(image.image_url), alt, draggable: "false" });
  shown.addEventListener("error", () => { shown.src = fromPage(image.thumbnail_url); }, { once: true });
  return shown;
}

function candidate(prediction, place) {
  const { taxon, label, score, neighbours, classifier, evidence } = prediction;
  const aside = [taxon?.rank === "unranked" ? null : taxon?.rank, ...(taxon?.common_names ?? [])].filter(Boolean);
  const accept = make("button", {
    type: "button", class: "rv-accept", "data-do": "accept", "data-place": place, "aria-keyshortcuts": place + 1,
  }, make("kbd", {}, String(place + 1)), make("span", {}, make("strong", {}, label),
    aside.length ? make("small", {}, aside.join(" · ")) : null), make("b", {}, percent(score)));
  const why = `Look-alikes ${percent(neighbours)}${classifier === null ? "" : ` · classifier ${percent(classifier)}`}`;
  const bar = make("span", { class: "rv-bar", "aria-hidden": "true" });
  bar.append(make("span", { style: `width: ${100 * score}%` }));
  return make("li", { class: "rv-candidate", "data-place": place }, accept, bar,
    make("p", { class: "rv-why" }, why), proofs(evidence, label));
}

function proofs(evidence, label) {
  if (!evidence.length) return null;
  const seen = evidence.filter((each) => each.thumbnail_url);
  if (!seen.length) {
    return make("p", { class: "rv-why" }, `${counted(evidence.length, "look-alike")} known without their pictures`);
  }
  return make("ul", { class: "rv-proofs" }, ...seen.map((each, number) => make("li", {},
    make("button", {
      type: "button", "data-do": "beside", "data-image": each.image_url, "data-thumbnail": each.thumbnail_url,
      "data-name": label, "data-score": each.score.toFixed(2),
    }, make("img", {
      src: fromPage(each.thumbnail_url), alt: `${label}, look-alike ${number + 1}: show it beside the observation`,
      loading: "lazy",
    })), make("small", {}, each.score.toFixed(2)))));
}

// Why there are no suggestions, or what to think of them.
function caution(identification) {
  if (!identification) return "Suggestions are hidden until you have voted: press N and say what you see.";
  if (identification.rejected) return `None of these, says the model: ${sentence(identification.reason ?? "")}`;
  return identification.predictions.length ? "" : "The models have no suggestion. Press N and say what you see.";
}

// When, where and by whom; as pairs of a word and a text.
function circumstances(observation) {
  const { latitude, longitude, observed, place, observer, submitter, notes } = observation;
  const point = latitude === null || longitude === null ? "" : `${latitude.toFixed(4)}, ${longitude.toFixed(4)}`;
  const known = [
    ["Seen", observed], ["Where", [place, point].filter(Boolean).join(" · ")], ["By", observer],
    ["Sent in", [moment(observation.created), submitter && `by ${submitter}`].filter(Boolean).join(" ")],
    ["Notes", notes],
  ];
  return known.filter(([, text]) => text).flatMap(([word, text]) => [make("dt", {}, word), make("dd", {}, text)]);
}

const standing = (observation) => observation.votes.filter((vote) => !vote.withdrawn).map((vote) =>
  make("li", {}, make("b", {}, vote.who), `: ${nameOf(vote)}`, vote.comment ? ` – ${vote.comment}` : ""));

function told(event, observation) {
  const vote = observation.votes.find((each) => each.id === event.facts.vote);
  const said = {
    submitted: "sent it in",
    voted: `said ${vote ? nameOf(vote) : event.facts.kind}`,
    withdrawn: `took back ${vote ? nameOf(vote) : "a vote"}`,
    decided: `now ${String(event.facts.status).replace("_", " ")}`,
    item_added: `picture ${event.facts.item} joined the collection`,
    item_removed: `picture ${event.facts.item} left the collection`,
  };
  const what = said[event.kind] ?? event.kind;
  return make("li", {}, `${moment(event.at)}: ${event.who ? `${event.who} ` : ""}${what}`);
}

const strip = (observation) => observation.images.map((image, place) => make("li", {},
  make("button", { type: "button", "data-do": "picture", "data-place": place, "aria-pressed": "false" },
    make("img", { src: fromPage(image.thumbnail_url), alt: `Picture ${place + 1}${image.organ ? `, ${image.organ}` : ""}` }),
    make("small", { "aria-hidden": "true" }, image.organ ?? String(place + 1)))));
