// A few-shot task: settings in the address, candidates by confidence, prototypes from round to round.
import { ask, base, find, make, percent, sayError } from "./common.js";
import { startPad } from "./pad.js";

const LIMITS = { classes: [3, 20, 5], samples: [1, 10, 5], candidates: [1, 20, 3], seed: [0, 999999, 0] };
const COLORS = 7;
const form = find("settings");
let settings = fromAddress();
let task = null;
let cards = []; // of the given drawings
let truth = false; // whether it is shown
let ended = false; // whether the last round is shown: at first it is the candidates as given
let timer = null; // of the rounds that are played
let asked = 0; // requests, so that an old answer does not replace a new one

// -------------------------------------------------------------------- settings

function fromAddress() {
  const given = new URLSearchParams(location.search);
  const found = {};
  for (const [name, [least, most, usual]] of Object.entries(LIMITS)) {
    const value = given.has(name) ? Math.round(Number(given.get(name))) : usual;
    found[name] = Math.min(most, Math.max(least, Number.isFinite(value) ? value : usual));
  }
  found.candidates = Math.min(found.candidates, found.classes);
  return found;
}

function showSettings() {
  find("candidates").max = settings.classes;
  for (const name of ["classes", "samples", "candidates"]) {
    find(name).value = settings[name];
    find(`${name}-now`).textContent = settings[name];
  }
  find("seed").textContent = settings.seed;
}

async function load() {
  showSettings();
  const [mine, sent] = [++asked, settings];
  stop();
  find("all").setAttribute("aria-busy", "true");
  try {
    const found = await ask(`${base}try/api/task`, sent);
    if (mine !== asked) return;
    task = { ...found, settings: sent };
    history.replaceState(null, "", `?${new URLSearchParams(sent)}`);
    draw();
  } catch (error) {
    if (mine !== asked) return;
    find("status").textContent = "";
    sayError(error);
  }
  find("all").setAttribute("aria-busy", "false");
}

let waiting;
form.addEventListener("input", (event) => {
  const { id, value } = event.target;
  settings = { ...settings, [id]: Number(value) };
  settings.candidates = Math.min(settings.candidates, settings.classes);
  showSettings();
  clearTimeout(waiting);
  waiting = setTimeout(load, 150); // a slider on its way stops at many numbers
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  settings = { ...settings, seed: (settings.seed + 1) % (LIMITS.seed[1] + 1) };
  load();
});

// -------------------------------------------------------------------- the task

const chosen = () => document.querySelector("input[name=method]:checked").value;
const method = () => task.methods[chosen()];
const step = () => method().steps[Number(find("round").value)];
const titleOf = (key) => document.querySelector(`tr[data-method=${key}] label`).textContent.trim();

function ink(picture, name) {
  // A drawing whose label stands beside it says nothing more to a screen reader.
  const told = name ? { role: "img", "aria-label": name } : { "aria-hidden": "true" };
  const element = make("span", { className: "ink", ...told });
  element.style.setProperty("--ink-of", `url(${picture})`);
  return element;
}

function draw() {
  find("all").hidden = false;
  const { given, labels } = task;
  const { seed, classes, candidates } = task.settings;
  find("status").textContent = `Task ${seed}: ${given.length} drawings of ${classes} characters, `
    + `${candidates} candidate${candidates === 1 ? "" : "s"} each.`;
  drawScores();
  cards = given.map((one) => {
    const chips = one.candidates.map(() => make("span", { className: "chip" }));
    return make("li", {}, ink(one.picture, "drawing"), make("div", { className: "chips" }, ...chips));
  });
  find("given").replaceChildren(...task.given_order.map((place) => cards[place]));
  const map = find("map");
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 1 1");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.append(...labels.map((_, label) => {
    const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    line.setAttribute("class", `k${label % COLORS}`);
    return line;
  }));
  const side = given.length <= 30 ? 6 : given.length <= 80 ? 4.6 : 3.4;
  map.style.setProperty("--side", `${side}%`);
  map.classList.toggle("many", labels.length > 10);
  map.replaceChildren(
    ...labels.map((letter, label) =>
      make("span", { className: `proto k${label % COLORS}` }, make("b", { textContent: letter }))),
    svg,
    ...given.map((one) => at(make("span", { className: "point" }, ink(one.picture, ""), make("b")), one.at)),
  );
  chooseMethod();
  pad.reset();
}

function at(element, [x, y]) {
  element.style.left = `${100 * x}%`;
  element.style.top = `${100 * y}%`;
  return element;
}

function drawScores() {
  const cell = (row, name, share, words) => row.querySelector(`.${name}`).replaceChildren(
    make("span", { textContent: words }), make("progress", { max: 1, value: share, "aria-hidden": "true" }));
  for (const [key, one] of Object.entries(task.methods)) {
    const row = document.querySelector(`tr[data-method=${key}]`);
    for (const [name, right, all] of [["labels", one.labels_right, task.given.length],
      ["queries", one.queries_right, task.new.length]]) {
      cell(row, name, right / all, `${right} of ${all}`);
    }
  }
  const row = document.querySelector("tr[data-method=ceiling]");
  const words = `${task.ceiling_error == null ? "" : "about "}${Math.round(100 * task.ceiling)}%`;
  for (const name of ["labels", "queries"]) cell(row, name, task.ceiling, words);
  find("undecided").textContent = undecided();
}

function undecided() {
  const groups = task.undecided;
  if (!groups.length) return "These candidate sets decide every label.";
  const all = groups.length === 1 && groups[0].length === task.labels.length;
  return all ? "These candidate sets settle no label for sure."
    : `These candidate sets cannot tell apart: ${groups.map((group) => group.join(", ")).join("; ")}.`;
}

// -------------------------------------------------------------------- one method, one round

function chooseMethod() {
  const last = method().steps.length - 1;
  const slider = find("round");
  slider.max = last;
  slider.value = ended ? last : 0;
  slider.disabled = find("play").disabled = last === 0;
  for (const row of document.querySelectorAll("tr[data-method]")) {
    row.classList.toggle("chosen", row.dataset.method === chosen());
  }
  for (const name of document.querySelectorAll("[data-chosen]")) name.textContent = titleOf(chosen());
  drawNew();
  drawRound();
  pad.show();
}

function drawRound() {
  const { name, labels, confidence, prototypes } = step();
  const now = Number(find("round").value);
  const last = now === method().steps.length - 1;
  if (method().steps.length > 1) ended = last;
  find("round-now").textContent = rightIn(name, labels);
  find("when").textContent = sureness(name, last);
  const points = find("map").querySelectorAll(".point");
  task.given.forEach((one, place) => {
    const label = labels[place];
    points[place].className = label < 0 ? "point open" : `point k${label % COLORS}`;
    points[place].classList.toggle("missed", truth && label >= 0 && label !== one.truth);
    points[place].querySelector("b").textContent = label < 0 ? "" : task.labels[label];
    const chips = cards[place].querySelectorAll(".chip");
    one.candidates.forEach((candidate, column) => {
      drawChip(chips[column], candidate, confidence[place][column], label, one.truth);
    });
  });
  const lines = find("map").querySelectorAll("polyline");
  find("map").querySelectorAll(".proto").forEach((element, label) => {
    at(element, prototypes[label]);
    const way = method().steps.slice(0, now + 1).map((one) => one.prototypes[label].join());
    lines[label].setAttribute("points", way.join(" "));
  });
}

function rightIn(name, labels) {
  if (labels.includes(-1)) return `${name}: nothing decided`;
  const right = labels.filter((label, place) => label === task.given[place].truth).length;
  return `${name}: ${right} of ${labels.length} right`;
}

function sureness(name, last) {
  const title = titleOf(chosen());
  if (method().steps.length === 1) return `For ${title} all candidates of a drawing count the same; it has no rounds.`;
  if (name === "as given") return `Before the first round of ${title}, all candidates of a drawing count the same.`;
  const when = last ? "in the end" : name === "start" ? "after a first look at similar drawings" : `after ${name}`;
  return `The stronger the color of a candidate, the surer ${title} is of it ${when}.`;
}

function drawChip(chip, candidate, sure, label, right) {
  const mark = !truth ? "" : candidate === right ? "✓ " : candidate === label ? "✗ " : "";
  chip.textContent = `${mark}${task.labels[candidate]} ${Math.round(100 * sure)}%`;
  chip.style.setProperty("--sure", sure);
  chip.classList.toggle("top", candidate === label);
  chip.classList.toggle("true", truth && candidate === right);
  chip.classList.toggle("wrong", truth && candidate === label && candidate !== right);
}

function drawNew() {
  const { predicted, sure } = method();
  find("new").replaceChildren(...task.new_order.map((place) => {
    const one = task.new[place];
    const chip = make("span", { className: "chip" });
    drawChip(chip, predicted[place], sure[place], predicted[place], one.truth);
    const item = make("li", {}, ink(one.picture, "new drawing"), chip);
    if (truth && predicted[place] !== one.truth) {
      item.append(" ", make("span", { className: "chip true", textContent: `✓ ${task.labels[one.truth]}` }));
    }
    return item;
  }));
}

// -------------------------------------------------------------------- what a person presses

function stop() {
  clearInterval(timer);
  timer = null;
  find("play").textContent = "Play";
}

find("play").addEventListener("click", () => {
  if (timer) { stop(); return; }
  const slider = find("round");
  if (slider.value === slider.max) slider.value = 0;
  find("play").textContent = "Pause";
  drawRound();
  timer = setInterval(() => {
    if (slider.value === slider.max) { stop(); return; }
    slider.value = Number(slider.value) + 1;
    drawRound();
  }, 700);
});
find("round").addEventListener("input", () => { stop(); drawRound(); });
for (const radio of document.querySelectorAll("input[name=method]")) {
  radio.addEventListener("change", () => { stop(); chooseMethod(); });
}
find("truth").addEventListener("click", () => {
  truth = !truth;
  find("truth").setAttribute("aria-pressed", String(truth));
  find("truth").textContent = truth ? "Hide the truth" : "Show the truth";
  find("key").hidden = !truth;
  drawNew();
  drawRound();
});

const pad = startPad({
  send: (what) => ask(`${base}try/api/draw`, { ...task.settings, ...what }),
  best: (probabilities) => probabilities[chosen()]
    .map((sure, label) => ({ sure, label }))
    .sort((one, other) => other.sure - one.sure)
    .slice(0, 3)
    .map(({ sure, label }) => {
      const example = task.given.find((one) => one.truth === label).picture;
      const item = make("li", {}, ink(example, `a drawing of ${task.labels[label]}`),
        make("b", { textContent: task.labels[label] }), ` ${percent(sure)}`);
      item.style.setProperty("--sure", sure);
      return item;
    }),
  count: () => task.new.length,
});
load();
