// What pages show of one sample in full: its candidates as buttons, and what else is known of it.
import { make, percent } from "./common.js";

// Who answers; kept by the browser.
export function author() {
  try { return localStorage.getItem("fspll-who") || ""; } catch { return ""; }
}

export function choices(sample, onLabel) {
  return sample.candidates.map((one, place) => {
    const button = make("button", { type: "button" }, make("span", { textContent: one.label }));
    button.setAttribute("aria-pressed", String(sample.answer === one.label));
    if (one.probability != null) {
      button.prepend(make("progress", { max: 1, value: one.probability, "aria-hidden": "true" }));
      button.append(make("i", { textContent: percent(one.probability) }));
    }
    if (place < 9) button.append(make("kbd", { textContent: place + 1 }));
    button.addEventListener("click", () => onLabel(one.label));
    return button;
  });
}

// The candidate that a number key stands for.
export function chosenByKey(sample, key) {
  const number = Number(key);
  return number >= 1 && number <= 9 ? sample.candidates[number - 1]?.label : undefined;
}

export function details(sample) {
  const lines = [...sample.columns];
  for (const one of sample.annotators) lines.push([one.who, one.labels.join(", ")]);
  return lines.flatMap(([title, text]) =>
    [make("dt", { textContent: title }), make("dd", { textContent: text })]);
}
