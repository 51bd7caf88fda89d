// The samples in two dimensions, on a canvas: thousands of marks are drawn in a few milliseconds.
import { find, home, make, percent } from "./common.js";

const NEAR = 14; // pixels from a mark at which it is pointed at
const NEAR_FINGER = 24;
const EDGE = 26;
const MOST_ZOOM = 32;
const NAMED = 24; // classes, up to which their names stand on the map

const box = find("chart");
const canvas = box.querySelector("canvas");
const ring = box.querySelector(".ring");
const tip = box.querySelector(".point");
let open = () => {};
let data = null; // as api/map returns it
let order = []; // of drawing
let places = []; // of the points, in pixels: [x, y]
let paths = [];
let colors = 1;
let at = -1; // point that is shown
let zoom = 1;
let middle = [0, 0]; // of the view, in units of the map
let size = [0, 0]; // of the map, in its units
let dragged = null;

export const onOpen = (callback) => { open = callback; };

export function drawMap(points, shapes, nColors) {
  const before = data?.ids[at];
  if (!data) middle = null;
  data = points;
  paths = shapes.map((one) => new Path2D(one));
  colors = nColors;
  // What a filter leaves out lies below, what is not settled on top.
  order = data.ids.map((_, i) => i).sort((a, b) => data.match[a] - data.match[b] || data.open[a] - data.open[b]);
  size = [Math.max(...data.x, 0), Math.max(...data.y, 0)];
  middle ??= [size[0] / 2, size[1] / 2];
  canvas.setAttribute("aria-label", `Map of ${data.ids.length} samples. ` +
    "Arrow keys go from sample to sample, Enter opens one, plus and minus zoom.");
  at = data.ids.indexOf(before);
  tip.replaceChildren();
  draw();
}

// ------------------------------------------------------------------ where things are

const width = () => canvas.clientWidth;
const height = () => canvas.clientHeight;
const scale = () => zoom * Math.min((width() - 2 * EDGE) / (size[0] || 1), (height() - 2 * EDGE) / (size[1] || 1));

function findPlaces() {
  const s = scale();
  const [left, top] = [width() / 2 - middle[0] * s, height() / 2 - middle[1] * s];
  places = data.ids.map((_, i) => [left + data.x[i] * s, top + data.y[i] * s]);
}

function nearest(x, y, near) {
  let best = -1;
  let least = near * near;
  for (let i = 0; i < data.ids.length; i++) {
    if (!data.match[i]) continue;
    const [a, b] = places[i];
    const distance = (a - x) ** 2 + (b - y) ** 2;
    if (distance < least) [best, least] = [i, distance];
  }
  return best;
}

// The nearest point ahead; those to the side count as further away.
function ahead(right, down) {
  let best = -1;
  let least = Infinity;
  for (let i = 0; i < data.ids.length; i++) {
    if (!data.match[i]) continue;
    const [x, y] = [data.x[i] - data.x[at], data.y[i] - data.y[at]];
    const forward = x * right + y * down;
    const distance = forward + 2 * (Math.abs(x * down) + Math.abs(y * right));
    if (forward > 0 && distance < least) [best, least] = [i, distance];
  }
  return best;
}

// ------------------------------------------------------------------ the drawing

let waiting = false;

// Draw before the next frame, once, however often it is asked for.
function drawSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
  });
}

export function draw() {
  if (!data || !width()) return;
  findPlaces();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width() * ratio;
  canvas.height = height() * ratio;
  const style = getComputedStyle(canvas);
  const color = (name) => style.getPropertyValue(name).trim();
  const context = canvas.getContext("2d");
  const mark = makeMarks(ratio, color);
  const [right, bottom] = [width() + EDGE, height() + EDGE];
  for (const i of order) {
    const [x, y] = places[i];
    if (x < -EDGE || y < -EDGE || x > right || y > bottom) continue;
    const image = mark(data.columns[i], data.open[i]);
    context.globalAlpha = data.match[i] ? 0.85 : 0.12;
    context.drawImage(image, Math.round(x * ratio - image.width / 2), Math.round(y * ratio - image.height / 2));
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.globalAlpha = 1;
  drawNames(context, color("--ink"), color("--paper"));
  point(at);
}

// Marks are drawn once and copied, which is several times as fast as their outlines each time.
let made = new Map();
let madeFor = "";
function makeMarks(ratio, color) {
  const big = ratio * (width() < 600 ? 0.8 : 1) * (data.ids.length > 1000 ? 0.8 : 1);
  const paper = color("--paper");
  if (madeFor !== `${big} ${paper}`) made = new Map();
  madeFor = `${big} ${paper}`;
  return (column, hollow) => {
    const key = 2 * (column % (colors * paths.length)) + hollow;
    if (!made.has(key)) {
      const image = make("canvas", { width: Math.ceil(18 * big), height: Math.ceil(18 * big) });
      const context = image.getContext("2d");
      const ink = color(`--k${column % colors}`);
      context.setTransform(big, 0, 0, big, image.width / 2, image.height / 2);
      context.fillStyle = hollow ? paper : ink;
      context.strokeStyle = hollow ? ink : paper;
      context.lineWidth = hollow ? 2 : 0.7;
      context.fill(paths[column % paths.length]);
      context.stroke(paths[column % paths.length]);
      made.set(key, image);
    }
    return made.get(key);
  };
}

// A class's name stands at the mean of its points, unless another name is there.
function drawNames(context, ink, paper) {
  const sums = new Map();
  for (let i = 0; i < data.ids.length; i++) {
    if (!data.match[i]) continue;
    const one = sums.get(data.labels[i]) || [0, 0, 0];
    const [x, y] = places[i];
    sums.set(data.labels[i], [one[0] + x, one[1] + y, one[2] + 1]);
  }
  if (sums.size > NAMED || sums.size < 2) return;
  Object.assign(context, {
    font: "600 14px system-ui, sans-serif", textAlign: "center", textBaseline: "middle",
    lineWidth: 4, lineJoin: "round", fillStyle: ink, strokeStyle: paper,
  });
  const taken = [];
  for (const [label, [x, y, n]] of [...sums].sort((a, b) => b[1][2] - a[1][2])) {
    const name = label.length > 18 ? `${label.slice(0, 17)}…` : label;
    const half = context.measureText(name).width / 2 + 2;
    const [a, b] = [x / n, y / n];
    if (taken.some(([c, d, h]) => Math.abs(a - c) < half + h && Math.abs(b - d) < 17)) continue;
    taken.push([a, b, half]);
    context.strokeText(name, a, b);
    context.fillText(name, a, b);
  }
}

// ------------------------------------------------------------------ one sample

function point(i) {
  const moved = i !== at;
  at = i;
  ring.hidden = tip.hidden = i < 0;
  canvas.style.cursor = i < 0 ? "" : "pointer";
  if (i < 0) return;
  const [x, y] = places[i];
  ring.style.transform = `translate(${x}px, ${y}px)`;
  if (moved || !tip.childElementCount) {
    const parts = [];
    if (data.pictures) {
      const image = make("img", { src: `${home}picture/small/${data.ids[i]}`, alt: "" });
      image.addEventListener("load", () => image.classList.toggle("pixels", image.naturalWidth < 112));
      image.addEventListener("error", () => image.remove());
      parts.push(image);
    } else if (data.texts && data.texts[i] && data.texts[i] !== data.names[i]) {
      parts.push(make("q", { textContent: data.texts[i] }));
    }
    parts.push(make("div", {}, make("b", { textContent: data.labels[i] }),
      make("span", { textContent: `${percent(data.confidence[i])} sure` }),
      make("span", { className: "name", textContent: data.names[i] })));
    tip.replaceChildren(...parts);
  }
  const left = Math.max(2, Math.min(x - tip.offsetWidth / 2, width() - tip.offsetWidth - 2));
  const above = y - tip.offsetHeight - 14;
  tip.style.transform = `translate(${left}px, ${above > 0 ? above : y + 14}px)`;
}

function where(event) {
  const area = canvas.getBoundingClientRect();
  return [event.clientX - area.left, event.clientY - area.top];
}

// ------------------------------------------------------------------ zooming and moving

function zoomBy(factor, x = width() / 2, y = height() / 2) {
  const s = scale();
  const fixed = [middle[0] + (x - width() / 2) / s, middle[1] + (y - height() / 2) / s];
  zoom = Math.min(MOST_ZOOM, Math.max(1, zoom * factor));
  const t = scale();
  middle = [fixed[0] - (x - width() / 2) / t, fixed[1] - (y - height() / 2) / t];
  settle();
}

// The view never leaves the map.
function settle() {
  const inside = [width(), height()].map((one) => one / scale() / 2);
  middle = middle.map((one, axis) => {
    const [low, high] = [inside[axis], size[axis] - inside[axis]].map((value, side) =>
      value + (side ? 1 : -1) * EDGE / scale());
    return low > high ? size[axis] / 2 : Math.min(high, Math.max(low, one));
  });
  canvas.style.touchAction = zoom > 1 ? "none" : "pan-y";
  drawSoon();
}

canvas.addEventListener("pointermove", (event) => {
  if (!data) return;
  const [x, y] = where(event);
  if (dragged && zoom > 1) {
    const moved = Math.hypot(x - dragged.x, y - dragged.y);
    dragged.far ||= moved > 5;
    if (dragged.far) {
      point(-1);
      middle = [dragged.middle[0] - (x - dragged.x) / scale(), dragged.middle[1] - (y - dragged.y) / scale()];
      settle();
      return;
    }
  }
  if (event.pointerType === "mouse") point(nearest(x, y, NEAR));
});
canvas.addEventListener("pointerdown", (event) => {
  const [x, y] = where(event);
  dragged = { x, y, middle, far: false };
  if (zoom > 1) canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("click", (event) => {
  const far = dragged?.far;
  dragged = null;
  if (!data || far) return;
  const [x, y] = where(event);
  const chosen = nearest(x, y, event.pointerType === "mouse" ? NEAR : NEAR_FINGER);
  point(chosen);
  if (chosen >= 0) open(data.ids[chosen]);
});
canvas.addEventListener("pointercancel", () => { dragged = null; });
canvas.addEventListener("pointerleave", () => { if (document.activeElement !== canvas) point(-1); });
canvas.addEventListener("blur", () => point(-1));
canvas.addEventListener("wheel", (event) => {
  if (!data || !(event.ctrlKey || event.metaKey)) return; // otherwise the page scrolls
  event.preventDefault();
  zoomBy(Math.exp(-event.deltaY / 200), ...where(event));
}, { passive: false });
canvas.addEventListener("keydown", (event) => {
  if (!data || event.ctrlKey || event.metaKey || event.altKey) return;
  const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  if (ways[event.key]) {
    const next = at < 0 ? nearest(width() / 2, height() / 2, Infinity) : ahead(...ways[event.key]);
    if (next >= 0) reveal(next);
  } else if (event.key === "Enter" && at >= 0) open(data.ids[at]);
  else if (event.key === "+" || event.key === "=") zoomBy(1.5);
  else if (event.key === "-") zoomBy(1 / 1.5);
  else if (event.key === "Escape") point(-1);
  else return;
  event.preventDefault();
});

// Show a point, and move the view where it lies outside.
function reveal(i) {
  const [x, y] = places[i];
  if (x < 0 || y < 0 || x > width() || y > height()) {
    middle = [data.x[i], data.y[i]];
    settle();
    draw();
  }
  point(i);
}

for (const button of box.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () =>
    zoomBy({ in: 1.6, out: 1 / 1.6, all: 1 / MOST_ZOOM }[button.dataset.zoom]));
}
new ResizeObserver(() => { if (data) settle(); }).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
