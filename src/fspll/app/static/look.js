// All samples: filters, the grid, the map, classes and annotators. The address holds what is shown.
import { ask, find, home, make, percent, sayError, show, watch } from "./common.js";
import * as detail from "./detail.js";
import { drawMap, onOpen } from "./map.js";
import { drawTable, mark } from "./tables.js";

const DEFAULTS = { view: "samples", sort: "doubt", label: "", reason: "", annotator: "", answered: "", q: "", page: "1" };
const FILTERS = ["label", "reason", "annotator", "answered", "q"];
const VIEWS = ["samples", "map", "classes", "annotators"];
const LEGEND = 100; // labels in the legend of the map

const filters = find("filters");
const grid = find("grid");
let state = read();
let overview = null;
let shown = []; // numbers of the samples in the grid
let drawn = ""; // what the grid was drawn for
let version = -1;
let turn = 0; // of requests: only the latest is drawn

// ------------------------------------------------------------------ the address

function read() {
  const given = new URLSearchParams(location.search);
  const found = Object.fromEntries(Object.entries(DEFAULTS).map(([key, value]) => [key, given.get(key) || value]));
  if (!VIEWS.includes(found.view)) found.view = DEFAULTS.view;
  return found;
}

function query(changes = {}, leaveOut = []) {
  const given = Object.entries({ ...state, ...changes })
    .filter(([key, value]) => value !== DEFAULTS[key] && !leaveOut.includes(key));
  return `?${new URLSearchParams(given)}`;
}

// The address of all samples that have one label, or one annotator, and nothing else.
const only = (what) => query({ ...DEFAULTS, sort: state.sort, ...what });

function go(address, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  state = read();
  load();
}

window.addEventListener("popstate", () => { state = read(); load(); });
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='?']");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.getAttribute("href"));
  if (link.closest("#pager, table")) find("main").scrollIntoView();
});

const narrow = ({ name, value }) =>
  go(query({ [name]: name === "q" ? value.trim() : value, page: "1" }), name === "q");
let typing;
filters.addEventListener("input", ({ target }) => {
  clearTimeout(typing);
  if (target.name === "q") typing = setTimeout(() => narrow(target), 250);
});
filters.addEventListener("change", ({ target }) => { if (target.name !== "q") narrow(target); });
filters.addEventListener("submit", (event) => event.preventDefault());
filters.addEventListener("reset", (event) => {
  event.preventDefault();
  go(query({ ...DEFAULTS, view: state.view, sort: state.sort }));
});

// ------------------------------------------------------------------ what is shown

async function load() {
  const mine = ++turn;
  drawFrame();
  try {
    if (state.view === "samples") {
      const found = await ask(`${home}api/samples${query({}, ["view"])}`);
      if (mine === turn) drawGrid(found);
    } else if (state.view === "map") {
      const found = await ask(`${home}api/map${query({}, ["view", "sort", "page"])}`);
      if (mine === turn) drawPoints(found);
    }
  } catch (error) {
    if (mine !== turn) return;
    if (error.name === "TypeError") sayError(error); // the server is not there
    refuse(error.message);
  }
}

// What the server does not know, in the place of what it would be.
function refuse(message) {
  find("found").textContent = find("no-map").textContent = message;
  find("found").classList.add("bad");
  find("no-map").hidden = false;
  find("chart").hidden = find("renew").hidden = true;
  grid.replaceChildren();
  find("pager").replaceChildren();
  shown = [];
}

function drawFrame() {
  for (const view of VIEWS) find(view).hidden = view !== state.view;
  for (const link of document.querySelectorAll(".views a")) {
    const { view } = link.dataset;
    link.href = query({ view, page: "1" });
    if (view === state.view) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  filters.hidden = state.view !== "samples" && state.view !== "map";
  filters.querySelector(".sorting").hidden = state.view !== "samples";
  filters.querySelector("[type=reset]").disabled = FILTERS.every((key) => !state[key]);
  for (const control of filters.querySelectorAll("[name]")) {
    const value = state[control.name];
    if (control === document.activeElement && control.name === "q") continue;
    if (control.tagName === "SELECT" && ![...control.options].some((one) => one.value === value)) {
      control.append(make("option", { value, textContent: value }));
    }
    control.value = value;
  }
  if (!overview) return;
  drawTable(find("classes"), "classes", overview, (label) => only({ label }));
  drawTable(find("annotators"), "annotators", overview, (annotator) => only({ annotator }));
}

function drawGrid(found) {
  drawn = query();
  shown = found.samples.map((one) => one.id);
  grid.className = `grid ${found.samples[0]?.kind ?? ""}s`;
  grid.replaceChildren(...found.samples.map(card));
  find("renew").hidden = true;
  drawCount(found);
  const { page, pages } = found;
  const link = (to, words, there) => there
    ? make("a", { href: query({ page: String(to) }), textContent: words })
    : make("span", { className: "soft", textContent: words });
  find("pager").replaceChildren(...(pages < 2 ? [] : [
    link(page - 1, "← Before", page > 1),
    make("span", { textContent: `Page ${page} of ${pages.toLocaleString("en")}` }),
    link(page + 1, "Next →", page < pages),
  ]));
}

function drawCount(found) {
  const all = overview?.samples ?? found.total;
  const narrowed = FILTERS.some((key) => state[key]);
  let words = narrowed ? `${found.total.toLocaleString("en")} of ${all.toLocaleString("en")} samples`
    : `${all.toLocaleString("en")} samples`;
  if (!narrowed && overview) words += `, ${overview.doubtful.toLocaleString("en")} of them doubtful`;
  if (!found.fitted && state.reason) words = "Why samples are doubtful is known in a moment, when the model is fitted.";
  find("found").textContent = words;
  find("found").classList.remove("bad");
}

function card(sample) {
  const button = make("button", { type: "button", className: "card" });
  button.addEventListener("click", () => detail.open(sample.id, shown));
  const item = make("li", { "data-id": sample.id }, button);
  if (sample.kind === "picture") button.append(make("span", { className: "thumb" }, show(sample)));
  if (sample.kind === "text") button.append(make("span", { className: "words", dir: "auto", textContent: sample.text }));
  button.append(make("span", { className: "about" }));
  if (sample.text !== sample.name) button.append(make("span", { className: "name", textContent: sample.name }));
  fill(item, sample);
  return item;
}

// What changes of a card; picture and focus stay.
function fill(item, sample) {
  const words = [];
  const note = (textContent, kind = "") => words.push(make("i", { className: `said ${kind}`, textContent }));
  item.className = sample.discarded ? "out" : "";
  if (sample.discarded) note("discarded");
  else if (sample.label == null) note("no label");
  else {
    const sure = make("span", { className: "sure" }, make("b", { textContent: sample.label }),
      make("span", { textContent: sample.answered ? "✓" : percent(sample.confidence) }));
    sure.style.setProperty("--share", `${100 * (sample.confidence ?? 0)}%`);
    words.push(sure);
    if (sample.answered) note("answered");
    if (sample.doubtful) note("doubtful", "doubtful");
  }
  item.querySelector(".about").replaceChildren(...words);
}

function drawPoints(found) {
  find("no-map").hidden = found.fitted;
  find("chart").hidden = !found.fitted;
  find("no-map").textContent = "The map comes in a moment, when the model is fitted.";
  find("caption").textContent = found.caption || "";
  if (!found.fitted || !overview) return;
  drawMap(found, overview.shapes, overview.colors);
  const there = overview.classes.filter((one) => one.count).sort((a, b) => b.count - a.count).slice(0, LEGEND);
  there.sort((a, b) => a.column - b.column);
  find("legend").replaceChildren(...there.map((one) => {
    const on = state.label === one.label;
    const link = make("a", { href: query({ label: on ? "" : one.label }) }, mark(one.column, overview),
      make("span", { textContent: one.label }), make("i", { textContent: one.count.toLocaleString("en") }));
    if (on) link.setAttribute("aria-current", "true");
    return make("li", {}, link);
  }));
}

// ------------------------------------------------------------------ what changes meanwhile

async function loadOverview() {
  overview = await ask(`${home}api/overview`);
  const options = (name, ones) => {
    const select = filters.elements[name];
    select.replaceChildren(make("option", { value: "", textContent: "all" }),
      ...ones.map(([value, textContent]) => make("option", { value, textContent })));
  };
  const count = (number) => number.toLocaleString("en");
  options("label", overview.classes.map((one) => [one.label, `${one.label} (${count(one.count)})`]));
  options("reason", overview.reasons.map((one) => [one.kind, one.words]));
  options("annotator", overview.annotators.map((one) => [one.name, `${one.name} (${count(one.judgments)})`]));
  filters.elements.annotator.closest("label").hidden = !overview.annotators.length;
  document.querySelector(".views [data-view=annotators]").hidden = !overview.annotators.length;
  find("detail-labels").replaceChildren(...overview.classes.map((one) => make("option", { value: one.label })));
}

// Show what answers and fits have changed. Cards keep their places: nobody is to click on another.
async function renew() {
  try {
    await loadOverview();
    if (state.view !== "samples" || drawn !== query() || !shown.length) {
      await load();
      return;
    }
    drawFrame();
    const mine = turn;
    const [now, fresh] = await Promise.all([
      ask(`${home}api/samples?ids=${shown}`), ask(`${home}api/samples${query({}, ["view"])}`)]);
    if (mine !== turn) return;
    for (const sample of now.samples) fill(cardOf(sample.id), sample);
    drawCount(fresh);
    find("renew").hidden = fresh.samples.map((one) => one.id).join() === shown.join();
  } catch (error) { sayError(error); }
}

const cardOf = (id) => grid.querySelector(`[data-id="${id}"]`);

find("renew").addEventListener("click", load);
detail.onChange(renew);
detail.onClose((id) => cardOf(id)?.querySelector("button").focus());
onOpen((id) => detail.open(id));

async function onStatus(status) {
  if (status.state !== "ready" || status.version === version || (status.updating && overview)) return;
  version = status.version;
  await renew();
  detail.refresh();
}

drawFrame();
watch(onStatus);
