// The form for a name: suggestions from the taxonomy, arrows choose one, Enter sends, Escape closes.
const PAUSE = 150; // milliseconds without a key before the taxonomy is asked

function nameForm(form, { send, close, changed }) {
  const field = form.querySelector("[name=name]"), rank = form.querySelector("[name=rank]");
  const list = form.querySelector("[role=listbox]");
  let found = [], chosen = -1, timer = 0, asked = 0;

  function offer(taxa) {
    [found, chosen] = [taxa, -1];
    list.replaceChildren(...taxa.map((taxon, place) => make("li",
      { role: "option", id: `rv-option-${place}`, "data-place": place, "aria-selected": "false" },
      make("strong", {}, taxon.name), make("small", {}, [taxon.rank, ...taxon.common_names].join(" · ")))));
    list.hidden = !taxa.length;
    field.setAttribute("aria-expanded", String(taxa.length > 0));
    field.removeAttribute("aria-activedescendant");
  }
  function choose(place) {
    chosen = place;
    for (const [number, option] of [...list.children].entries()) {
      option.setAttribute("aria-selected", String(number === chosen));
    }
    if (chosen < 0) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", `rv-option-${chosen}`);
  }
  async function suggest() {
    const text = field.value.trim(), number = (asked += 1);
    const taxa = text.length < 2 ? [] : await taxaNamed(text).catch(() => []);
    if (number === asked && !form.hidden) offer(taxa); // else somebody typed on
  }
  // A name that is known is that taxon, whatever rank the form says.
  function submit() {
    const name = field.value.trim();
    const known = found[chosen] ?? found.find((taxon) => taxon.name.toLowerCase() === name.toLowerCase());
    if (known) send({ kind: "taxon", taxon_id: known.id });
    else if (name) send({ kind: "new_taxon", name, rank: rank.value });
    else field.focus();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  form.addEventListener("input", (event) => {
    changed();
    if (event.target !== field) return;
    clearTimeout(timer);
    timer = setTimeout(suggest, PAUSE);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      close();
    } else if (event.target === field && ["ArrowDown", "ArrowUp"].includes(event.key) && found.length) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      choose(((chosen + 1 + step + found.length + 1) % (found.length + 1)) - 1); // -1 is what was typed
    }
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) send({ kind: "taxon", taxon_id: found[option.dataset.place].id });
  });
  return {
    open(title, name, ofRank) {
      form.querySelector("h3").textContent = title;
      [field.value, rank.value] = [name, ofRank];
      form.hidden = false;
      offer([]);
      form.scrollIntoView({ block: "nearest" });
      field.focus({ preventScroll: true });
      field.select();
      if (name) suggest();
    },
    hide() {
      clearTimeout(timer);
      form.hidden = true;
    },
    get draft() {
      return form.hidden ? null : { title: form.querySelector("h3").textContent, name: field.value, rank: rank.value };
    },
  };
}
