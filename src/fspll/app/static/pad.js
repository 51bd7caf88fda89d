// A pad to draw a character on: strokes as shares of its side go to the server, classes come back.
import { find, sayError } from "./common.js";

const WIDTH = 0.045; // of a line, as a share of the side; about that of the drawings
const NEAR = 0.004; // points that are nearer to the last one say nothing new

export function startPad({ send, best, count }) {
  const canvas = find("pad");
  const pen = canvas.getContext("2d");
  let strokes = [];
  let current = null; // the stroke that is being drawn
  let answer = null;
  let asked = 0;

  function clear() {
    asked += 1; // what is on its way no longer counts
    strokes = [];
    current = answer = null;
    pen.clearRect(0, 0, canvas.width, canvas.height);
    find("classified").hidden = true;
  }

  async function classify(what) {
    const mine = ++asked;
    try {
      const found = await send(what);
      if (mine !== asked) return null;
      answer = found;
      show();
      return found;
    } catch (error) {
      if (mine === asked) sayError(error);
      return null;
    }
  }

  function show() {
    if (!answer) return;
    find("seen").style.setProperty("--ink-of", `url(${answer.picture})`);
    find("best").replaceChildren(...best(answer.probabilities));
    find("classified").hidden = false;
  }

  function place(event) {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  function line(from, to) {
    const side = canvas.width;
    pen.lineWidth = WIDTH * side;
    pen.lineCap = "round";
    pen.strokeStyle = "#1d1f23"; // the paper is white in dark mode, too
    pen.beginPath();
    pen.moveTo(from[0] * side, from[1] * side);
    pen.lineTo(to[0] * side, to[1] * side);
    pen.stroke();
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary || event.button > 0) return;
    event.preventDefault();
    if (!strokes.length) clear(); // a drawing that was put here makes room
    canvas.setPointerCapture(event.pointerId);
    current = [place(event)];
    line(current[0], current[0]);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!current || !event.isPrimary) return;
    const all = event.getCoalescedEvents?.() ?? [];
    for (const one of all.length ? all : [event]) {
      const next = place(one);
      const last = current[current.length - 1];
      if (Math.hypot(next[0] - last[0], next[1] - last[1]) < NEAR) continue;
      line(last, next);
      current.push(next);
    }
  });
  function lift(event) {
    if (!current || !event.isPrimary) return;
    strokes.push(current);
    current = null;
    classify({ strokes });
  }
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);

  find("clear").addEventListener("click", clear);
  find("use").addEventListener("click", async () => {
    clear();
    const found = await classify({ query: Math.floor(Math.random() * count()) });
    if (!found) return;
    const image = new Image();
    image.addEventListener("load", () => {
      if (answer === found) pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    });
    image.src = found.picture;
  });

  return { reset: clear, show };
}
