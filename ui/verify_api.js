// The service, by addresses relative to the page, and what the browser remembers.
let reviewer = ""; // the name sent along while the service has no keys

class Refused extends Error {
  constructor(status, kind, detail) {
    super(detail);
    Object.assign(this, { status, kind });
  }
}

async function call(method, path, body) {
  const headers = reviewer ? { "X-Reviewer": encodeURIComponent(reviewer) } : {};
  const form = body instanceof FormData;
  if (body && !form) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, body: body && !form ? JSON.stringify(body) : body });
  } catch {
    throw new Refused(0, "", "the service does not answer; nothing you typed is lost, try again in a moment");
  }
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => null);
  if (response.ok && answer) return answer;
  const kind = String(answer?.type ?? "").split(":").pop(); // urn:readleaf:problem:KIND
  throw new Refused(response.status, kind, answer?.detail ?? `the service answered ${response.status}`);
}

// Every collection there is; names may hold anything.
const collections = async () => (await call("GET", "v1/collections")).collections.map((each) => each.name);
const taxaNamed = async (name) => (await call("GET", `v1/taxa?limit=6&name=${encodeURIComponent(name)}`)).taxa;

// The genus above a taxon, or that taxon itself; null if the taxonomy does not know it.
async function genusOf(taxon) {
  for (let steps = 0; taxon && steps < 5; steps += 1) {
    if (taxon.rank === "genus") return taxon;
    taxon = taxon.parent === null ? null : await call("GET", `v1/taxa/${taxon.parent}`);
  }
  return null;
}

// Storage may be forbidden or full: then a reload forgets, and nothing else.
function recall(store, name, otherwise) {
  try {
    return JSON.parse(window[store].getItem(`readleaf.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function remember(store, name, value) {
  try {
    if (value === null) window[store].removeItem(`readleaf.${name}`);
    else window[store].setItem(`readleaf.${name}`, JSON.stringify(value));
  } catch { /* as above */ }
}
