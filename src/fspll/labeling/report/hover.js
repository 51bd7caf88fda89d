// Shows the sample of the map that is pointed at, tapped, or reached by the arrow keys.
(function () {
  "use strict";
  var box = document.querySelector(".map"), svg = box.querySelector("svg"), at = null;
  var tip = box.querySelector(".tip"), ring = svg.querySelector(".ring");
  var frame = tip.querySelector("svg"), text = tip.querySelector("blockquote");
  var NEAR = 14, NEAR_FINGER = 28; // pixels of the screen
  var points = [].map.call(svg.querySelectorAll(".points use"), function (mark) {
    var title = mark.querySelector("title"), words = title.textContent.split("\n");
    mark.removeChild(title); // or the browser would show it as well
    return {
      mark: mark, name: words[0], label: words[1], text: mark.getAttribute("data-text") || "",
      x: Number(mark.getAttribute("x")), y: Number(mark.getAttribute("y")),
      picture: "p" + mark.getAttribute("data-row")
    };
  });

  function hide() {
    at = null;
    tip.hidden = true;
    ring.setAttribute("visibility", "hidden");
  }
  function show(point) {
    if (point === at) { return; }
    at = point;
    var picture = document.getElementById(point.picture);
    frame.style.display = picture ? "" : "none";
    if (picture) { frame.querySelector("use").setAttribute("href", "#" + point.picture); }
    text.textContent = point.text;
    text.hidden = !point.text;
    tip.classList.toggle("words", !!point.text);
    tip.querySelector(".name").textContent = point.name;
    tip.querySelector("strong").textContent = point.label;
    tip.hidden = false;
    ring.setAttribute("cx", point.x);
    ring.setAttribute("cy", point.y);
    ring.removeAttribute("visibility");
    var scale = svg.clientWidth / svg.viewBox.baseVal.width;
    var x = point.x * scale, y = point.y * scale, gap = 12;
    var left = Math.min(x - tip.offsetWidth / 2, box.clientWidth - tip.offsetWidth - 2);
    tip.style.left = Math.max(2, left) + "px";
    tip.style.top = (y > tip.offsetHeight + gap ? y - tip.offsetHeight - gap : y + gap) + "px";
  }
  function nearest(event, near) {
    var area = svg.getBoundingClientRect(), scale = area.width / svg.viewBox.baseVal.width;
    var x = (event.clientX - area.left) / scale, y = (event.clientY - area.top) / scale;
    var best = null, least = Math.pow(near / scale, 2);
    points.forEach(function (point) {
      var distance = Math.pow(point.x - x, 2) + Math.pow(point.y - y, 2);
      if (distance < least && !point.mark.classList.contains("dim")) {
        best = point;
        least = distance;
      }
    });
    return best;
  }
  function follow(near) {
    return function (event) {
      var point = nearest(event, near);
      if (point) { show(point); } else { hide(); }
    };
  }
  // The nearest point ahead; those to the side count as further away.
  function next(right, down) {
    var best = null, least = Infinity;
    points.forEach(function (point) {
      var ahead = (point.x - at.x) * right + (point.y - at.y) * down;
      var aside = Math.abs((point.x - at.x) * down) + Math.abs((point.y - at.y) * right);
      if (ahead > 0 && ahead + 2 * aside < least && !point.mark.classList.contains("dim")) {
        best = point;
        least = ahead + 2 * aside;
      }
    });
    return best;
  }

  svg.addEventListener("mousemove", follow(NEAR));
  svg.addEventListener("mouseleave", hide);
  svg.addEventListener("click", follow(NEAR_FINGER)); // which a tap is, too
  svg.setAttribute("role", "application"); // of which a screen reader leaves the arrow keys alone
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", function (event) {
    var ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    if (event.key === "Escape") { hide(); }
    if (!ways[event.key]) { return; }
    event.preventDefault();
    var point = at ? next.apply(null, ways[event.key]) : points[0];
    if (point) { show(point); }
  });
})();
