// What a page shows at the width of its frame, told to the page around it.
(function () {
  "use strict";
  var wide = document.documentElement.clientWidth, isPhone = wide < 500, told = [];
  var clear = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

  function rgba(text, opacity) {
    clear.clearRect(0, 0, 1, 1);
    clear.fillStyle = text;
    clear.fillRect(0, 0, 1, 1);
    var data = clear.getImageData(0, 0, 1, 1).data;
    return [data[0], data[1], data[2], (data[3] / 255) * (opacity === undefined ? 1 : +opacity)];
  }
  function over(top, below) {
    return [0, 1, 2].map(function (i) { return top[i] * top[3] + below[i] * (1 - top[3]); }).concat(1);
  }
  function light(colour) {
    var parts = colour.slice(0, 3).map(function (value) {
      var share = value / 255;
      return share <= 0.03928 ? share / 12.92 : Math.pow((share + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  }
  function contrast(a, b) {
    var x = light(a), y = light(b);
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  }
  function ground(node) {
    var stack = [];
    for (; node; node = node.parentElement) {
      stack.push(rgba(getComputedStyle(node).backgroundColor));
    }
    return stack.reverse().reduce(function (below, top) { return over(top, below); }, [255, 255, 255, 1]);
  }
  function say(what, node) {
    told.push(what + ": " + (node.textContent || node.outerHTML).trim().slice(0, 50));
  }
  function words(node) {
    return Array.prototype.some.call(node.childNodes, function (one) {
      return one.nodeType === 3 && one.data.trim();
    });
  }
  // shapes that a text of a drawing lies on, from below to above; a halo is of the page's colour
  function shaded(text, box, under) {
    var x = box.left + box.width / 2, y = box.top + box.height / 2;
    if (getComputedStyle(text).paintOrder.indexOf("stroke") === 0) { return under; }
    var on = document.elementsFromPoint(x, y).filter(function (one) {
      return one.ownerSVGElement === text.ownerSVGElement && one !== text && one.tagName !== "text";
    });
    return on.reverse().reduce(function (below, one) {
      var style = getComputedStyle(one), fill = style.fill;
      if (fill === "none" || fill.indexOf("url") === 0) { return below; }
      return over(rgba(fill, style.fillOpacity * style.opacity), below);
    }, under);
  }

  document.querySelectorAll("details").forEach(function (one) { one.open = true; });
  window.dispatchEvent(new Event("resize"));
  document.querySelectorAll("body *").forEach(function (node) {
    var box = node.getBoundingClientRect(), style = getComputedStyle(node);
    if (!box.width || style.visibility === "hidden" || node.closest(".skip, script")) { return; }
    var moves = node.closest(".scroll, .drawing, nav");
    if (!moves && (box.right > wide + 2 || box.left < -2)) { say("cut", node); }
    if (isPhone && box.width < 60 && (node.innerText || "").trim().length > 24) { say("narrow", node); }
    if (!words(node) || node.tagName === "title") { return; }
    var isDrawn = node.namespaceURI.indexOf("svg") > 0, under = ground(node.closest("svg") || node);
    var size = parseFloat(style.fontSize) * (isDrawn ? node.getScreenCTM().a : 1);
    if (size && Math.abs(size) < 9.95 && !(isDrawn && node.getScreenCTM().b)) {
      say("small " + size.toFixed(1), node);
    }
    var ink = rgba(isDrawn ? style.fill : style.color);
    if (isDrawn) { under = shaded(node, box, under); }
    var ratio = contrast(over(ink, under), under);
    if (ratio < 4.5) { say("faint " + ratio.toFixed(2), node); }
  });
  document.querySelectorAll(".scroll, .drawing").forEach(function (box) {
    if (box.scrollWidth > box.clientWidth && !(box.tabIndex === 0 && box.getAttribute("aria-label"))) {
      say("out of reach of the keyboard", box);
    }
  });
  document.querySelectorAll(".sorts").forEach(function (table) {
    table.querySelectorAll("th button").forEach(function (button) {
      var i = button.parentNode.cellIndex;
      ["ascending", "descending"].forEach(function (way) {
        button.click();
        if (button.parentNode.getAttribute("aria-sort") !== way) { say("no " + way, button); }
        var numbers = Array.prototype.map.call(table.tBodies[0].rows, function (row) {
          return row.cells[i] ? +row.cells[i].getAttribute("data-n") || 0 : 0;
        }), figures = Array.prototype.every.call(table.tBodies[0].rows, function (row) {
          return row.cells[i] && row.cells[i].hasAttribute("data-n");
        });
        var rising = way === "ascending" ? 1 : -1;
        if (figures && numbers.some(function (n, k) { return k && rising * (n - numbers[k - 1]) < 0; })) {
          say("not sorted " + way, button);
        }
      });
      button.click();
      if (button.parentNode.hasAttribute("aria-sort")) { say("always sorted", button); }
    });
  });
  document.querySelectorAll("details").forEach(function (one) { one.open = false; });
  window.dispatchEvent(new Event("beforeprint"));
  if (document.querySelector("details:not([open])")) { told.push("shut in print"); }
  window.dispatchEvent(new Event("afterprint"));
  if (document.querySelector("details[open]")) { told.push("open after print"); }
  var fetched = performance.getEntriesByType("resource").length;
  if (fetched || document.querySelector("[src], link, object, embed")) { told.push("fetches something"); }
  if (document.documentElement.scrollWidth > wide) { told.push("wider than its screen"); }
  parent.told = (parent.told || []).concat(
    told.map(function (one) { return window.name + " " + one; }), window.name + " measured");
  parent.document.title = JSON.stringify(parent.told);
})();
