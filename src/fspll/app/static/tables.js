// The tables of classes and of annotators: sorted by any column, a click on a name filters by it.
import { find, make, percent } from "./common.js";

const LEAST = { label: 1, name: 1, confidence: 1, agreement: 1 }; // columns that begin with the least
const COLUMNS = {
  classes: [["label", "Label"], ["count", "Samples"], ["confidence", "Mean confidence"], ["doubtful", "Doubtful"]],
  annotators: [["name", "Annotator"], ["judgments", "Samples labeled"], ["agreement", "Agreement"]],
};
const SHARES = ["confidence", "agreement"];
const sorting = { classes: ["doubtful", -1], annotators: ["judgments", -1] };
const order = new Intl.Collator("en", { numeric: true });

// The mark of a class, in the color and the shape that it has on the map.
export function mark(column, { shapes, colors }) {
  const svg = (tag, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  return svg("svg", { viewBox: "-8 -8 16 16", class: `mark k${column % colors}`, "aria-hidden": "true" },
    svg("path", { d: shapes[column % shapes.length] }));
}

export function drawTable(section, which, overview, address) {
  const columns = COLUMNS[which];
  const [by, way] = sorting[which];
  const compare = (a, b) => typeof a === "string" ? order.compare(a, b) : (a ?? 2) - (b ?? 2);
  const rows = [...overview[which]].sort((a, b) => way * compare(a[by], b[by]));
  const head = columns.map(([key, words]) => {
    const arrow = key === by ? (way > 0 ? " ▲" : " ▼") : "";
    const button = make("button", { type: "button", textContent: words + arrow });
    button.addEventListener("click", () => {
      sorting[which] = [key, key === by ? -way : LEAST[key] || -1];
      drawTable(section, which, overview, address);
      section.querySelectorAll("thead button")[columns.findIndex(([one]) => one === key)].focus();
    });
    const cell = make("th", { scope: "col" }, button);
    if (key === by) cell.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    return cell;
  });
  section.querySelector("table").replaceChildren(
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows.map((row) => make("tr", {},
      ...columns.map(([key], place) => place ? figure(row, key) : title(row, key))))));
  if (which === "classes") {
    find("more-classes").textContent = overview.more_classes
      ? `And ${overview.more_classes.toLocaleString("en")} more labels, which have fewer doubtful samples.` : "";
  }

  function title(row, key) {
    const link = make("a", { href: address(row[key]), textContent: row[key] });
    const cell = make("th", { scope: "row", className: "name" }, link);
    if (which === "classes") cell.prepend(mark(row.column, overview));
    return cell;
  }
}

function figure(row, key) {
  const value = row[key];
  if (!SHARES.includes(key)) return make("td", { textContent: value.toLocaleString("en") });
  const cell = make("td", { className: "share", textContent: value == null ? "–" : percent(value) });
  cell.style.setProperty("--share", `${100 * (value ?? 0)}%`);
  return cell;
}
