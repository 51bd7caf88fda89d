// One sample at a time: keys and buttons, undo, skip; the queue comes anew with every answer.
import { ask, find, home, make, percent, say, sayError, show, showProgress, watch } from "./common.js";
import { author, choices, chosenByKey, details } from "./sample.js";

const task = find("task");
const queue = task.dataset.queue;
const events = []; // what this window said, the latest last
const skipped = [];
let current = null;
let busy = false;
let known = -1; // version that the sample on the page was drawn at
let ready = false;

const who = find("who");
who.value = author();
who.addEventListener("change", () => {
  try { localStorage.setItem("fspll-who", who.value); } catch { /* no storage here */ }
});

function draw(sample) {
  const same = current && sample && current.id === sample.id;
  current = sample;
  task.hidden = !sample;
  find("finished").hidden = Boolean(sample);
  find("undo").disabled = find("undo-last").disabled = !events.length;
  if (!sample) return;
  if (!same) find("show").replaceChildren(show(sample, "large"));
  find("name").textContent = sample.name;
  find("details").replaceChildren(...details(sample));
  find("question").textContent = sample.answer == null ? "Which label is right?" : "Answered: right?";
  find("reason").textContent = sample.reason ? `Why it is asked: ${sample.reason}.` : "";
  find("choices").replaceChildren(...choices(sample, (label) => answer({ label })));
  find("gain").textContent = gained(sample);
  const near = sample.neighbors || [];
  find("near").hidden = !near.length;
  const list = find("neighbors");
  list.classList.toggle("texts", sample.kind !== "picture");
  list.replaceChildren(...near.map((one) => make("li", {}, show(one), make("b", { textContent: one.label }))));
  if (!same) { find("label").value = ""; }
}

function gained(sample) {
  if (sample.gain == null || queue === "audit") return "";
  const labels = sample.gain >= 0.05 ? sample.gain.toFixed(1) : "under 0.1";
  const then = sample.right_after ? `; ${percent(sample.right_after)} right then` : "";
  return `The answer is expected to make ${labels} more label${labels === "1.0" ? "" : "s"} right${then}.`;
}

async function answer(what) {
  if (!current || busy) return;
  busy = true;
  try {
    const found = await ask(`${home}api/answer`,
      { id: current.id, queue, who: who.value, skipped, ...what });
    events.push(found.event);
    take(found);
  } catch (error) {
    sayError(error);
  } finally {
    busy = false;
  }
}

function take(found) {
  known = found.version;
  showProgress({ state: "ready", progress: found.progress, updating: true, message: "" });
  draw(found.next);
  prefetch(found.queue);
}

// The pictures that come next, so that they are there when they are wanted.
function prefetch(ids) {
  if (!current || current.kind !== "picture") return;
  for (const id of ids.filter((one) => one !== current.id && !skipped.includes(one)).slice(0, 3)) {
    new Image().src = `${home}picture/large/${id}`;
  }
}

async function undo() {
  if (busy || !events.length) return;
  busy = true;
  try {
    const found = await ask(`${home}api/undo`, { event: events[events.length - 1] });
    events.pop();
    take(found);
    say("Taken back");
  } catch (error) {
    if (error.message.includes("answered again")) events.pop();
    sayError(error);
    find("undo").disabled = !events.length;
  } finally {
    busy = false;
  }
}

async function next() {
  try {
    const found = await ask(`${home}api/queue?name=${queue}`);
    const left = found.queue.filter((id) => !skipped.includes(id));
    if (found.queue.length && !left.length) {
      skipped.length = 0;
      say("All were skipped: from the beginning again");
      draw(found.next);
    } else if (left.length && (!found.next || found.next.id !== left[0])) {
      draw(await ask(`${home}api/sample/${left[0]}?queue=${queue}`));
    } else {
      draw(found.next);
    }
    prefetch(left);
  } catch (error) {
    sayError(error);
  }
}

async function skip() {
  if (!current) return;
  skipped.push(current.id);
  if (skipped.length > 900) skipped.shift();
  await next();
}

find("skip").addEventListener("click", skip);
find("undo").addEventListener("click", undo);
find("undo-last").addEventListener("click", undo);
find("discard")?.addEventListener("click", () => answer({ discard: true }));
find("other").addEventListener("submit", (event) => {
  event.preventDefault();
  const label = find("label").value.trim();
  if (label) answer({ label }).then(() => find("label").blur());
});
find("draw")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await ask(`${home}api/save`, { audit: Number(find("size").value) });
    say("Drawing labels, and making the result anew …");
    ready = false;
  } catch (error) { sayError(error); }
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const label = current ? chosenByKey(current, event.key) : undefined;
  if (label !== undefined) answer({ label });
  else if (event.key === "s") skip();
  else if (event.key === "u") undo();
  else if (event.key === "d" && queue === "review") answer({ discard: true });
  else if (event.key === "o" && current) find("label").focus();
  else return;
  event.preventDefault();
});

async function onStatus(status) {
  if (status.state !== "ready") return;
  if (!ready) {
    ready = true;
    find("labels").replaceChildren(...status.classes.map((one) => make("option", { value: one })));
    await next();
  } else if (!status.updating && status.version !== known && !busy) {
    known = status.version;
    // What answers said of other samples: the figures of the one on the page, never another one.
    if (current) {
      const id = current.id;
      const fresh = await ask(`${home}api/sample/${id}?queue=${queue}`);
      if (!busy && current && current.id === id) draw(fresh);
    } else await next();
  }
}

watch(onStatus);
