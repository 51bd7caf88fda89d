// Send files, show how they were read, let a person correct it, and start.
import { ask, base, find, make, say, sayError } from "./common.js";
import { sendAll } from "./sending.js";

const page = find("new");
const options = find("options");
const start = find("start");
const FIELDS = ["table", "samples", "text", "features", "features_columns", "sample", "file", "annotator",
  "delimiter", "excluded", "combine", "unlabeled", "marks", "sheet", "encoding", "rename"];
const TICKS = ["merge_similar", "skip_bad", "standardize", "excel"];
const MODALITY = { pictures: "image", texts: "text", vectors: "vector" };
const KEPT = `fspll-uploads ${base}`;
let upload = null; // its secret
let asked = 0; // readings that were asked for: only the latest is shown
let encoderChosen = false;
let busy = false;

const address = (what) => `${base}new/${upload}/${what}`;

// ---------------------------------------------------------------- uploads of this browser

function known() {
  try { return JSON.parse(localStorage.getItem(KEPT)) || []; } catch { return []; }
}

function keep(keys) {
  try { localStorage.setItem(KEPT, JSON.stringify(keys)); } catch { /* no storage here */ }
}

async function showMine() {
  const rows = [];
  for (const key of known()) {
    try {
      const state = await ask(`${base}new/${key}/state`);
      if (key !== upload) rows.push(mine(key, state));
    } catch { keep(known().filter((one) => one !== key)); }
  }
  find("mine").hidden = !rows.length;
  find("uploads").replaceChildren(...rows);
}

function mine(key, state) {
  const what = [...state.files, ...(state.pictures ? [`${state.pictures} pictures`] : [])].join(", ") || "empty";
  const go = state.workspace
    ? make("a", { href: `${base}w/${state.workspace}/review`, textContent: "Review" })
    : make("button", { type: "button", textContent: "Go on" });
  if (!state.workspace) go.addEventListener("click", async () => { upload = key; await read(); showMine(); });
  const away = make("button", { type: "button", textContent: "Delete" });
  away.setAttribute("aria-label", `Delete ${what}`);
  away.addEventListener("click", async () => {
    if (!confirm(`Delete ${what}, with its labels and answers?`)) return;
    try {
      await ask(`${base}new/${key}/close`, {});
      showMine();
    } catch (error) { sayError(error); }
  });
  return make("li", {}, make("span", { textContent: what }), go, away);
}

// ---------------------------------------------------------------- files

async function add(files) {
  if (!files.length || busy) return;
  busy = true;
  find("refused").replaceChildren();
  try {
    if (!upload) {
      upload = (await ask(`${base}new/start`, {})).upload;
      keep([...known(), upload]);
    }
    const refused = await sendAll(files, address("upload"), page.dataset, onSent);
    const shown = refused.slice(0, 5).map((one) => make("li", { textContent: one }));
    if (refused.length > 5) shown.push(make("li", { textContent: `and ${refused.length - 5} more files were refused` }));
    find("refused").replaceChildren(...shown);
    await read();
  } catch (error) {
    sayError(error);
  } finally {
    busy = false;
    find("sent").hidden = true;
  }
}

function onSent(files, total, share, last) {
  find("sent").hidden = false;
  find("sent").value = share;
  const unpacking = share >= 1 && last.toLowerCase().endsWith(".zip") ? ", unpacking" : "";
  find("sending").textContent = files < total ? `Sending file ${files + 1} of ${total}${unpacking} …` : "";
}

async function remove(what) {
  try {
    await ask(address("remove"), what);
    if (find("table").value === what.name) find("table").replaceChildren();
    for (const name of ["features", "rename"]) if (find(name).value === what.name) find(name).value = "";
    await read();
  } catch (error) { sayError(error); }
}

function showFiles(found) {
  const rows = found.files.map((one) => fileRow(one.name, size(one.bytes), { name: one.name }));
  const left = found.left_out ? `, ${found.left_out} other files of zips left out` : "";
  if (found.pictures) {
    const count = found.pictures === 1 ? "1 picture" : `${found.pictures} pictures`;
    rows.push(fileRow(count, left, { pictures: true }));
  }
  find("files").replaceChildren(...rows);
}

function fileRow(name, about, what) {
  const button = make("button", { type: "button", textContent: "Remove" });
  button.setAttribute("aria-label", `Remove ${name}`);
  button.addEventListener("click", () => remove(what));
  return make("li", {}, make("span", { textContent: name }), make("span", { className: "soft", textContent: about }), button);
}

const size = (bytes) => bytes < 1e6 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

// ---------------------------------------------------------------- how it was read

function chosen() {
  const given = {};
  for (const name of FIELDS) if (find(name).value) given[name] = find(name).value;
  for (const name of TICKS) given[name] = find(name).checked;
  if (given.delimiter === "none") given.delimiter = "";
  if (given.marks) given.marks = given.marks === "yes";
  const columns = [...find("candidates").querySelectorAll("input:checked")].map((one) => one.value);
  if (columns.length) given.candidates = columns;
  if (encoderChosen && find("encoder").value) given.encoder = find("encoder").value;
  return given;
}

async function read() {
  const number = ++asked;
  try {
    const found = await ask(address("reading"), chosen());
    if (number === asked) draw(found);
  } catch (error) {
    if (number === asked) {
      find("problem").textContent = error.message;
      find("run").disabled = true;
    }
  }
}

function draw(found) {
  showFiles(found);
  const table = Boolean(found.table);
  find("read").hidden = !table;
  find("sets").hidden = find("go").hidden = true;
  find("hint").textContent = "";
  if (!table) {
    const any = found.files.length || found.pictures;
    find("hint").textContent = any ? "Now add a table with the candidates of each sample." : "";
    return;
  }
  fill("table", found.files.map((one) => one.name), found.table);
  for (const name of ["text", "sample", "file", "annotator", "excluded"]) fill(name, found.columns);
  const others = found.files.map((one) => one.name).filter((one) => one !== found.table);
  fill("features", others);
  fill("rename", others);
  fill("sheet", found.sheets);
  for (const name of ["samples", "text", "features"]) tellFound(name, found[name]);
  ticks(found.choices.length ? found.choices : found.columns);
  const kind = found.samples;
  hide("text", kind !== "texts");
  hide("features", kind !== "vectors");
  hide("features_columns", kind !== "vectors");
  hide("file", kind !== "pictures");
  hide("standardize", kind !== "vectors");
  hide("sheet", !found.sheets.length);
  hide("rename", !others.length);
  hide("skip_bad", kind === "vectors");
  drawReading(found);
}

function drawReading(found) {
  find("summary").textContent = found.summary || "";
  find("problem").textContent = found.problem;
  const notes = [...(found.notes || [])];
  if (found.missing) notes.push(`${found.missing} of ${found.n_samples} pictures are missing: ${found.missing_names.join(", ")}`);
  if (found.unused) notes.push(`${found.unused} uploaded pictures are not in the table`);
  find("notes").replaceChildren(...notes.map((one) => make("li", { textContent: one })));
  find("first").replaceChildren(...(found.first || []).map((one, place) => sample(one, place, found)));
  const head = make("tr", {}, ...found.columns.map((one) => make("th", { scope: "col", textContent: one })));
  const rows = found.rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", { textContent: cell }))));
  find("rows").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  find("raw").hidden = !found.columns.length;
  if (!found.first) find("raw").open = true; // what there is to choose from
  find("first-title").hidden = !found.first;
  find("diagnosis").replaceChildren(...(found.diagnosis || []).map((one) => make("li", { textContent: one })));
  find("sets").hidden = !found.diagnosis;
  find("go").hidden = Boolean(found.problem);
  find("run").disabled = Boolean(found.problem);
  if (!found.problem) encoders(found);
}

function fill(name, values, value) {
  const select = find(name);
  const before = value || select.value;
  const first = select.options[0] && !select.options[0].value ? [select.options[0]] : [];
  select.replaceChildren(...first, ...values.filter(Boolean).map((one) => make("option", { value: one, textContent: one })));
  select.value = before;
  if (select.selectedIndex < 0) select.selectedIndex = 0;
}

// What the server found where nothing was chosen.
function tellFound(name, value) {
  const first = find(name).options[0];
  first.dataset.words ||= first.textContent;
  first.textContent = value && !find(name).value ? `found: ${value}` : first.dataset.words;
}

function ticks(columns) {
  const area = find("candidates");
  const there = [...area.querySelectorAll("input")];
  if (there.map((one) => one.value).join("\n") === columns.filter(Boolean).join("\n")) return; // keeps the focus
  const checked = new Set(there.filter((one) => one.checked).map((one) => one.value));
  area.replaceChildren(...columns.filter(Boolean).map((one) => make("label", {},
    make("input", { type: "checkbox", value: one, checked: checked.has(one) }), ` ${one}`)));
}

const hide = (name, hidden) => { find(name).closest("p").hidden = hidden; };

function sample(one, place, found) {
  const chips = one.candidates.map((label) => make("li",
    { textContent: label.votes > 1 ? `${label.label} × ${label.votes}` : label.label }));
  if (one.more) chips.push(make("li", { textContent: `and ${one.more} more` }));
  const words = make("div", {}, make("p", { className: "name soft", textContent: one.name }));
  if (one.text) words.append(make("blockquote", { textContent: one.text }));
  words.append(make("ul", { className: "chips" }, ...chips));
  const row = make("li", {}, words);
  if (found.samples === "pictures" && !found.problem) row.prepend(thumb(one, place));
  return row;
}

function thumb(one, place) {
  // The number of the reading: the same place may show another picture now.
  const image = make("img", { src: `${address("picture")}/${place}?${asked}`, alt: `picture ${one.name}` });
  image.addEventListener("load", () => image.classList.toggle("pixels", image.naturalWidth < 72));
  image.addEventListener("error", () => image.replaceWith(make("span", { className: "none soft", textContent: "no picture" })));
  return image;
}

function encoders(found) {
  const fitting = found.encoders.filter((one) => !one.modality || one.modality === MODALITY[found.samples]);
  const select = find("encoder");
  select.replaceChildren(...fitting.map((one) => make("option",
    { value: one.name, textContent: `${one.name}: ${one.takes}${one.missing ? " (not installed)" : ""}` })));
  select.value = found.encoder;
  if (select.selectedIndex < 0) select.selectedIndex = 0;
  const lacking = () => {
    const one = fitting.find((each) => each.name === select.value);
    find("lacking").textContent = one && one.missing ? one.missing : "";
  };
  select.onchange = () => { encoderChosen = true; lacking(); };
  lacking();
}

// ---------------------------------------------------------------- label

async function run() {
  find("failed").textContent = "";
  find("run").disabled = true;
  try {
    const found = await ask(address("run"), { ...chosen(), encoder: find("encoder").value });
    await follow(`${base}w/${found.workspace}/`);
  } catch (error) {
    find("failed").textContent = error.message;
  } finally {
    find("run").disabled = false;
    find("encoded").hidden = true;
    find("running").textContent = "";
  }
}

async function follow(home) {
  for (;;) {
    const status = await ask(`${home}api/status`);
    if (status.state === "failed") throw new Error(status.message);
    if (status.state === "ready") { location.href = `${home}review`; return; }
    const [done, total] = status.done || [0, 0];
    find("encoded").hidden = !total;
    find("encoded").value = total ? done / total : 0;
    find("running").textContent = !total ? "Starting …"
      : done < total ? `Encoding samples: ${done} of ${total} …` : "Finding the labels …";
    await new Promise((go) => setTimeout(go, 300));
  }
}

// ---------------------------------------------------------------- events

find("encoding").append(find("encodings").content);
find("choose").addEventListener("change", (event) => {
  const files = [...event.target.files];
  event.target.value = ""; // the same file may be chosen again
  add(files);
});
const drop = find("drop");
for (const name of ["dragover", "dragenter"]) {
  document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("over"); });
document.addEventListener("drop", async (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  if (busy) { say("Wait until all files are sent"); return; }
  const entries = [...event.dataTransfer.items].map((one) => one.webkitGetAsEntry?.()).filter(Boolean);
  add(entries.length ? (await Promise.all(entries.map(filesOf))).flat() : [...event.dataTransfer.files]);
});

// The files of a dropped folder, and of those in it.
async function filesOf(entry) {
  if (entry.isFile) return [await new Promise((done, fail) => { entry.file(done, fail); })];
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((done, fail) => { reader.readEntries(done, fail); });
    if (!some.length) break;
    found.push(...some);
  }
  return (await Promise.all(found.map(filesOf))).flat();
}

options.addEventListener("change", (event) => {
  if (event.target.name === "table") {
    find("candidates").replaceChildren();
    for (const name of ["text", "sample", "file", "annotator", "excluded", "sheet"]) find(name).value = "";
  }
  if (event.target.name === "samples") encoderChosen = false;
  read();
});
options.addEventListener("submit", (event) => { event.preventDefault(); read(); });
start.addEventListener("submit", (event) => { event.preventDefault(); run(); });

showMine();
