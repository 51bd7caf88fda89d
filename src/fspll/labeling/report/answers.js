// A person's answers: pressed on the page, kept by the browser, downloaded as a table.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("answer-data").textContent);
  var bar = document.querySelector(".answered"), lists = {}, answers = {}, before = [];
  var store = null;

  // ---------------------------------------------------------------- the table
  // As fspll.annotations.writing has it: what a spreadsheet would run gets an apostrophe, which
  // the readers take off.
  function guard(cell) {
    cell = cell.replace(/([;\t\r\n])(?=["' ]*[=+\-@\t\r])/g, "$1'");
    var number = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
    return /^'*[=+\-@\t\r]/.test(cell) && !number.test(cell) ? "'" + cell : cell;
  }
  function line(cells) {
    return cells.map(function (cell) {
      cell = guard(cell);
      return /[,;\t\r\n"]|^\s|\s$/.test(cell) ? '"' + cell.replace(/"/g, '""') + '"' : cell;
    }).join() + "\n";
  }
  function table() {
    return line(data.columns) + Object.keys(answers).map(function (row) {
      return line([data.samples[row][0], answers[row], data.samples[row][1]]);
    }).join("");
  }
  function download() {
    var link = document.createElement("a");
    var address = URL.createObjectURL(new Blob([table()], { type: "text/csv;charset=utf-8" }));
    link.href = address;
    link.download = data.file;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(address); }, 60000);
  }

  // ---------------------------------------------------------------- what the browser keeps
  function load() {
    var saved = null;
    try {
      store = window.localStorage; // which pages that are files may not have
      saved = JSON.parse(store.getItem(data.key));
    } catch (error) { store = null; }
    Object.keys(saved || {}).forEach(function (row) {
      var known = Object.prototype.hasOwnProperty.call(data.samples, row);
      if (known && typeof saved[row] === "string" && saved[row]) { answers[row] = saved[row]; }
    });
  }
  function save() {
    try {
      if (Object.keys(answers).length) {
        store.setItem(data.key, JSON.stringify(answers));
      } else { store.removeItem(data.key); }
    } catch (error) { store = null; } // full, or not there
  }

  // ---------------------------------------------------------------- what the page shows
  function press(button, on) { button.setAttribute("aria-pressed", on); }
  function showRow(row) {
    (lists[row] || []).forEach(function (list) {
      var given = answers[row], found = false;
      list.querySelectorAll("button[data-label]").forEach(function (button) {
        var on = data.labels[button.getAttribute("data-label")] === given;
        press(button, on);
        found = found || on;
      });
      var other = list.querySelector(".other button");
      press(other, given !== undefined && !found);
      other.textContent = given !== undefined && !found ? given : "another label …";
    });
  }
  function showBar() {
    var count = Object.keys(answers).length;
    bar.hidden = !count && !before.length;
    bar.querySelector("output").textContent = count === 1 ? "1 answer" : count + " answers";
    bar.querySelector(".download").disabled = !count;
    bar.querySelector(".undo").disabled = !before.length;
    var kept = bar.querySelector(".kept");
    kept.classList.toggle("warned", !store);
    kept.textContent = store
      ? "This browser keeps your answers."
      : "This browser does not keep your answers: download them before you leave.";
  }
  function set(row, label) {
    if (label === undefined) { delete answers[row]; } else { answers[row] = label; }
    save();
    showRow(row);
    showBar();
  }
  function answer(row, label) {
    before.push([row, answers[row]]);
    set(row, answers[row] === label ? undefined : label); // pressed again: taken back
  }

  // ---------------------------------------------------------------- another label
  function ask(row, button) {
    var input = document.createElement("input"), done = false, was = "";
    input.setAttribute("list", "labels");
    input.setAttribute("aria-label", "another label for " + data.samples[row][0]);
    if (button.getAttribute("aria-pressed") === "true") { was = input.value = answers[row]; }
    function finish(taken, back) {
      if (done) { return; }
      done = true;
      var label = input.value.trim();
      button.hidden = false;
      input.parentNode.removeChild(input);
      if (taken && !label && was) { answer(row, was); }
      if (taken && label && label !== answers[row]) { answer(row, label); }
      if (back) { button.focus(); }
    }
    input.addEventListener("keydown", function (event) {
      if (event.key === "Enter" || event.key === "Escape") {
        event.preventDefault();
        finish(event.key === "Enter", true);
      }
    });
    input.addEventListener("blur", function () { finish(true, false); });
    button.hidden = true;
    button.parentNode.appendChild(input);
    input.focus();
  }

  var suggested = document.createElement("datalist");
  suggested.id = "labels";
  data.suggested.forEach(function (label) {
    suggested.appendChild(document.createElement("option")).value = label;
  });
  document.body.appendChild(suggested);
  load();
  document.querySelectorAll(".bars[data-row]").forEach(function (list) {
    var row = list.getAttribute("data-row");
    (lists[row] = lists[row] || []).push(list);
    list.querySelectorAll("button").forEach(function (button) { button.disabled = false; });
    list.addEventListener("click", function (event) {
      var button = event.target.closest("button");
      if (!button) { return; }
      var column = button.getAttribute("data-label");
      if (column === null) { ask(row, button); } else { answer(row, data.labels[column]); }
    });
  });
  Object.keys(answers).forEach(showRow);
  showBar();
  bar.querySelector(".download").addEventListener("click", download);
  bar.querySelector(".undo").addEventListener("click", function () {
    var last = before.pop();
    if (last) { set(last[0], last[1]); }
  });
})();
