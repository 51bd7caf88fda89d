// Plain JavaScript of ten years ago, so that any browser runs it; nothing is loaded.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("map-data").textContent);
  var box = document.querySelector(".map"), last = data.steps.length - 1, now = [], only = null;
  var points = box.querySelectorAll(".points use");
  var trails = box.querySelectorAll(".trails polyline");
  var protos = box.querySelectorAll(".protos > g");
  var names = box.querySelectorAll(".names > g");
  var steps = document.querySelector(".steps"), timer = null;

  function dim(element, column) {
    element.classList.toggle("dim", only !== null && only !== column);
  }
  function refresh() {
    for (var i = 0; i < points.length; i++) { dim(points[i], now[i]); }
    for (var c = 0; c < protos.length; c++) {
      dim(protos[c], data.columns[c]);
      dim(trails[c], data.columns[c]);
      if (names[c]) { dim(names[c], data.columns[c]); }
    }
  }
  function show(step) {
    var before = now;
    now = data.first.slice();
    for (var s = 0; s < step; s++) {
      data.changes[s].forEach(function (one) { now[one[0]] = one[1]; });
    }
    for (var i = 0; i < points.length; i++) {
      if (before[i] === now[i]) { continue; }
      var open = points[i].classList.contains("open") ? " open" : "";
      points[i].setAttribute("class", "k" + now[i] % data.colors + open);
      points[i].setAttribute("href", "#m" + now[i] % data.shapes);
    }
    for (var c = 0; c < protos.length; c++) {
      var at = data.prototypes[step][c], way = [];
      protos[c].style.transform = "translate(" + at[0] + "px," + at[1] + "px)";
      if (names[c]) { names[c].style.transform = protos[c].style.transform; }
      for (var t = 0; t <= step; t++) { way.push(data.prototypes[t][c].join()); }
      trails[c].setAttribute("points", way.join(" "));
    }
    refresh();
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    if (steps) { steps.querySelector("button").textContent = "Play"; }
  }
  show(last);
  if (steps) {
    var slider = steps.querySelector("input"), words = steps.querySelector("output");
    var go = function (step) {
      slider.value = step;
      words.textContent = data.steps[step];
      show(step);
    };
    slider.addEventListener("input", function () { stop(); go(Number(slider.value)); });
    steps.querySelector("button").addEventListener("click", function () {
      if (timer) { stop(); return; }
      var step = Number(slider.value) >= last ? 0 : Number(slider.value);
      this.textContent = "Pause";
      go(step);
      timer = setInterval(function () {
        if (step >= last) { stop(); } else { step += 1; go(step); }
      }, Math.max(150, Math.min(700, 6000 / last)));
    });
    steps.hidden = false;
  }
  document.querySelectorAll(".legend li[data-column]").forEach(function (item) {
    var column = Number(item.getAttribute("data-column"));
    var choose = function () {
      only = only === column ? null : column;
      document.querySelectorAll(".legend li").forEach(function (other) {
        var on = other === item && only !== null;
        other.classList.toggle("on", on);
        other.setAttribute("aria-pressed", on);
      });
      refresh();
    };
    item.setAttribute("role", "button");
    item.setAttribute("tabindex", "0");
    item.addEventListener("click", choose);
    item.addEventListener("keydown", function (event) {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); }
    });
  });
})();
