// What all pages share: requests, elements, messages. Text from data is only ever textContent.
const { base, home } = document.body.dataset;
export { base, home };

export const find = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export class Refused extends Error {}

// Ask the server; throws Refused with its sentence, or another error when it is not there.
export async function ask(address, given) {
  const options = given === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(given),
  };
  const response = await fetch(address, options);
  const found = await response.json().catch(() => ({ error: response.statusText }));
  if (!response.ok) throw new Refused(found.error || response.statusText);
  return found;
}

let hiding;
export function say(message, bad = false) {
  const toast = find("toast");
  toast.textContent = message;
  toast.classList.toggle("bad", bad);
  clearTimeout(hiding);
  hiding = setTimeout(() => { toast.textContent = ""; }, bad ? 8000 : 2500);
}

export function sayError(error) {
  say(error instanceof Refused ? error.message
    : "The server does not answer. Is fspll app still running?", true);
}

export const percent = (share) => share == null ? "" :
  share >= 0.9995 && share < 1 - 1e-9 ? ">99.9%" :
  share > 1e-9 && share < 0.0005 ? "<0.1%" : `${(100 * share).toFixed(1)}%`;

// A sample's picture or text, for a person to look at.
export function show(sample, size = "small") {
  if (sample.kind === "picture") {
    const image = make("img", {
      src: `${home}picture/${size}/${sample.id}`,
      alt: `picture ${sample.name}`,
      loading: size === "small" ? "lazy" : "eager",
    });
    // Small drawings are shown with their pixels as squares.
    image.addEventListener("load", () => {
      image.classList.toggle("pixels", Math.max(image.naturalWidth, image.naturalHeight) < 112);
    });
    image.addEventListener("error", () => {
      image.replaceWith(make("span", { className: "soft", textContent: "no picture" }));
    });
    return image;
  }
  return make("blockquote", { textContent: sample.text || sample.name });
}

// The line of progress, as the server words it, and whether the model is still learning.
export function showProgress(status) {
  const line = find("progress");
  if (!line) return;
  if (status.state === "failed") {
    line.textContent = status.message;
    line.classList.add("bad");
  } else if (status.state === "labeling" || status.state === "reading") {
    const [done, total] = status.done || [0, 0];
    line.textContent = total ? `Encoding samples: ${done} of ${total} …` : "Reading the result …";
  } else {
    const problem = status.message ? ` (${status.message})` : "";
    line.textContent = status.progress.line + (status.updating ? ", updating …" : "") + problem;
    line.classList.toggle("bad", Boolean(status.message));
  }
}

// Ask for the status until something says stop; ever less often while nothing changes.
export async function watch(onStatus, until = () => false) {
  let pause = 250;
  let version = -1;
  for (;;) {
    try {
      const status = await ask(`${home}api/status`);
      showProgress(status);
      onStatus(status);
      if (until(status)) return;
      pause = status.version !== version || status.updating ? 400 : Math.min(pause * 1.5, 5000);
      version = status.version;
    } catch (error) {
      sayError(error);
      pause = 3000;
    }
    await new Promise((go) => setTimeout(go, pause));
  }
}
