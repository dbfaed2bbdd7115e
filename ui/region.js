// Gradio gives `element`, `props`, `trigger` and `watch`.
const SMALLEST = 12; // of a frame's sides, in pixels on the screen: less is a slip of the hand
let pane = null; // lies on the picture while a frame is drawn, and shows it afterwards

function clear() {
  pane?.remove();
  pane = null;
}

// Where the picture's pixels are drawn inside its element's parent, and how large.
function drawn(image) {
  const own = image.getBoundingClientRect(), parent = image.parentElement.getBoundingClientRect();
  const fit = Math.min(own.width / image.naturalWidth, own.height / image.naturalHeight);
  const scale = getComputedStyle(image).objectFit === "scale-down" ? Math.min(1, fit) : fit;
  const width = image.naturalWidth * scale, height = image.naturalHeight * scale;
  return {
    scale, width, height,
    left: own.left - parent.left + (own.width - width) / 2,
    top: own.top - parent.top + (own.height - height) / 2,
  };
}

function place(box, left, top, width, height) {
  Object.assign(box.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
}

function choose() {
  const image = document.querySelector("#query-picture img");
  if (!image?.naturalWidth) return;
  clear();
  pane = document.createElement("div");
  pane.className = "rl-pane";
  pane.title = "Draw a frame around the part to look at";
  const frame = pane.appendChild(document.createElement("div"));
  image.parentElement.style.position = "relative";
  image.parentElement.append(pane);
  image.addEventListener("load", clear, { once: true }); // another picture in the same place

  let area = null, start = null;
  pane.lay = () => {
    area = drawn(image);
    place(pane, area.left, area.top, area.width, area.height);
    if (props.value) place(frame, ...props.value.split(",").map((pixels) => pixels * area.scale));
  };
  pane.lay();
  const within = (event) => {
    const box = pane.getBoundingClientRect();
    return [
      Math.min(Math.max(event.clientX - box.left, 0), area.width),
      Math.min(Math.max(event.clientY - box.top, 0), area.height),
    ];
  };
  const draw = (event) => {
    const [x, y] = within(event);
    const frameAt = [Math.min(x, start[0]), Math.min(y, start[1]), Math.abs(x - start[0]), Math.abs(y - start[1])];
    place(frame, ...frameAt);
    return frameAt;
  };
  pane.addEventListener("click", (event) => event.stopPropagation());
  pane.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    pane.setPointerCapture(event.pointerId);
    start = within(event);
    draw(event);
  });
  pane.addEventListener("pointermove", (event) => start && draw(event));
  pane.addEventListener("pointercancel", clear);
  pane.addEventListener("pointerup", (event) => {
    if (!start) return;
    const [x, y, width, height] = draw(event);
    start = null;
    if (width < SMALLEST || height < SMALLEST) return;
    const left = Math.floor(x / area.scale), top = Math.floor(y / area.scale);
    const right = Math.min(image.naturalWidth, Math.round((x + width) / area.scale));
    const bottom = Math.min(image.naturalHeight, Math.round((y + height) / area.scale));
    pane.classList.add("rl-chosen");
    props.value = [left, top, Math.max(1, right - left), Math.max(1, bottom - top)].join(",");
    trigger("apply");
  });
}

element.addEventListener("click", (event) => {
  const wish = event.target.closest("[data-do]")?.dataset.do;
  if (wish === "part") choose();
  if (wish === "all") {
    props.value = "";
    clear();
    trigger("apply");
  }
});
watch("value", () => props.value || clear()); // another picture
addEventListener("resize", () => pane?.lay());
