// One sample in a dialog: look at it, answer it, take the answer back.
import { ask, find, home, percent, sayError, show, showProgress } from "./common.js";
import { author, choices, chosenByKey, details } from "./sample.js";

const dialog = find("detail");
const events = new Map(); // by sample: what this window said of it, the latest last
let current = null;
let wanted = -1; // the sample that was asked for last
let ids = []; // among which one goes back and forth
let busy = false;
let changed = () => {};
let closed = () => {};

// Call a function when something was said here, and with the last sample when the dialog closes.
export const onChange = (callback) => { changed = callback; };
export const onClose = (callback) => { closed = callback; };

export async function open(id, among = []) {
  ids = among;
  await load(id);
  if (current && !dialog.open) dialog.showModal();
}

// Ask for the figures of the sample on the page again: the model has learned.
export const refresh = () => { if (dialog.open && current && !busy) load(wanted); };

async function load(id) {
  wanted = id;
  try {
    const sample = await ask(`${home}api/sample/${id}`);
    if (wanted === id) draw(sample);
  } catch (error) { sayError(error); }
}

function draw(sample) {
  const same = current && current.id === sample.id;
  const focused = document.activeElement?.closest("#detail-choices button");
  const place = focused ? [...find("detail-choices").children].indexOf(focused) : -1;
  current = sample;
  find("detail-name").textContent = sample.name;
  if (!same) {
    find("detail-show").replaceChildren(show(sample, "large"));
    find("detail-label").value = "";
  }
  find("detail-lines").replaceChildren(...details(sample));
  find("detail-question").textContent = sample.answered ? "Answered: right?" : "Which label is right?";
  find("detail-reason").textContent = sample.reason && !sample.answered ? `Doubtful: ${sample.reason}.` : "";
  find("detail-choices").replaceChildren(...choices(sample, (label) => answer({ label })));
  find("detail-choices").children[same ? place : -1]?.focus();
  find("take-back").disabled = !sample.answered;
  find("leave-out").disabled = sample.discarded || sample.audited;
  find("detail-said").textContent = said(sample);
  const at = ids.indexOf(sample.id);
  find("before").hidden = find("after").hidden = ids.length < 2 || at < 0;
  find("before").disabled = at <= 0;
  find("after").disabled = at === ids.length - 1;
}

function said(sample) {
  if (sample.discarded) return "Discarded: the sample is left out.";
  if (sample.audited) return `Checked in the audit: ${sample.answer}.`;
  if (sample.answered) return `Answered: ${sample.answer}.`;
  if (sample.label == null) return "No label yet, or the sample cannot be read.";
  return `Label: ${sample.label}${sample.confidence == null ? "" : `, ${percent(sample.confidence)} sure`}.`;
}

async function act(send) {
  if (!current || busy) return;
  busy = true;
  const { id } = current;
  try {
    const { progress } = await send(id);
    showProgress({ state: "ready", progress, updating: true, message: "" });
    if (wanted === id) await load(id);
    changed();
  } catch (error) {
    sayError(error);
  } finally { busy = false; }
}

const answer = (what) => act(async (id) => {
  const queue = current.audited ? "audit" : "review";
  const found = await ask(`${home}api/answer`, { id, queue, who: author(), ...what });
  events.set(id, [...(events.get(id) || []), found.event]);
  return found;
});

// What this window said is undone step by step; what was said before is withdrawn.
const takeBack = () => act(async (id) => {
  const mine = events.get(id) || [];
  events.set(id, mine.slice(0, -1));
  return mine.length ? ask(`${home}api/undo`, { event: mine[mine.length - 1] })
    : ask(`${home}api/withdraw`, { id });
});

const step = (by) => {
  const at = ids.indexOf(wanted);
  if (at >= 0 && ids[at + by] !== undefined) load(ids[at + by]);
};

find("close").addEventListener("click", () => dialog.close());
find("before").addEventListener("click", () => step(-1));
find("after").addEventListener("click", () => step(1));
find("take-back").addEventListener("click", takeBack);
find("leave-out").addEventListener("click", () => answer({ discard: true }));
find("detail-other").addEventListener("submit", (event) => {
  event.preventDefault();
  const label = find("detail-label").value.trim();
  if (label) answer({ label }).then(() => find("detail-label").blur());
});
// A click beside the dialog closes it.
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog.addEventListener("close", () => {
  closed(current.id);
  current = null;
  wanted = -1;
});
// On the document: a button that becomes disabled loses the focus to it.
document.addEventListener("keydown", (event) => {
  if (!dialog.open || !current) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input")) return;
  const label = chosenByKey(current, event.key);
  if (label !== undefined) answer({ label });
  else if (event.key === "u" && current.answered) takeBack();
  else if (event.key === "d" && !find("leave-out").disabled) answer({ discard: true });
  else if (event.key === "ArrowLeft") step(-1);
  else if (event.key === "ArrowRight") step(1);
  else return;
  event.preventDefault();
});
