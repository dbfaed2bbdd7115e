// A picture in a frame: wheel, click, pinch and keys enlarge it around a point, dragging moves it.
const MOST = 8, STEP = 1.5, SLACK = 6; // times; times a key press; pixels that a click may tremble

function zoomIn(frame, picture) {
  let scale = 1, x = 0, y = 0, travelled = 0, apart = 0;
  const fingers = new Map();
  const bounded = (value, least, most) => Math.min(most, Math.max(least, value));

  function draw() {
    x = bounded(x, frame.clientWidth * (1 - scale), 0);
    y = bounded(y, frame.clientHeight * (1 - scale), 0);
    picture.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    frame.classList.toggle("rv-zoomed", scale > 1);
  }
  function around(times, event) {
    const box = frame.getBoundingClientRect();
    const at = event ? [event.clientX - box.left, event.clientY - box.top] : [box.width / 2, box.height / 2];
    const next = bounded(scale * times, 1, MOST);
    x = at[0] - ((at[0] - x) * next) / scale;
    y = at[1] - ((at[1] - y) * next) / scale;
    scale = next;
    draw();
  }
  function move(right, down) {
    x += right;
    y += down;
    draw();
  }
  function reset() {
    [scale, x, y] = [1, 0, 0];
    draw();
  }

  frame.addEventListener("wheel", (event) => {
    if (event.deltaY > 0 && scale === 1) return; // there is nothing to leave: the page scrolls
    event.preventDefault();
    around(Math.exp(-event.deltaY / 400), event);
  }, { passive: false });
  frame.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    if (!fingers.size) travelled = 0;
    fingers.set(event.pointerId, event);
    apart = 0;
    frame.setPointerCapture(event.pointerId);
  });
  frame.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    fingers.set(event.pointerId, event);
    const right = event.clientX - before.clientX, down = event.clientY - before.clientY;
    travelled += Math.hypot(right, down);
    const [one, other] = [...fingers.values()];
    if (!other) return scale > 1 && travelled > SLACK ? move(right, down) : undefined;
    const now = Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    const middle = { clientX: (one.clientX + other.clientX) / 2, clientY: (one.clientY + other.clientY) / 2 };
    if (apart) around(now / apart, middle);
    apart = now;
  });
  for (const end of ["pointerup", "pointercancel"]) {
    frame.addEventListener(end, (event) => {
      const was = fingers.delete(event.pointerId);
      apart = 0;
      if (!was || end !== "pointerup" || fingers.size || travelled > SLACK) return;
      if (scale >= 4) reset();
      else around(2, event);
    });
  }
  return {
    closer: () => around(STEP),
    away: () => around(1 / STEP),
    reset,
    move: (right, down) => move((-right * frame.clientWidth) / 5, (-down * frame.clientHeight) / 5),
  };
}
