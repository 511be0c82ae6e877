(function () {
  var tip = document.getElementById("tip");
  document.querySelectorAll(".chart").forEach(function (chart) {
    var points = [];
    chart.querySelectorAll(".p").forEach(function (use) {
      var title = use.querySelector("title");
      points.push({ x: +use.getAttribute("x"), y: +use.getAttribute("y"), text: title.textContent });
      use.removeChild(title);
    });
    chart.addEventListener("pointermove", function (event) {
      var scale = chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
      var at = chart.getBoundingClientRect(), best = null, least = 24 * 24;
      points.forEach(function (point) {
        var x = at.left + point.x * scale - event.clientX;
        var y = at.top + point.y * scale - event.clientY;
        var far = x * x + y * y;
        if (far <= least) { least = far; best = point; }
      });
      tip.style.display = best ? "block" : "none";
      if (!best) { return; }
      tip.textContent = best.text;
      var wide = document.documentElement.clientWidth - tip.offsetWidth - 8;
      tip.style.left = Math.max(4, Math.min(event.clientX + 16, wide)) + "px";
      var below = event.clientY + 16 + tip.offsetHeight < window.innerHeight;
      tip.style.top = (below ? event.clientY + 16 : event.clientY - tip.offsetHeight - 12) + "px";
    });
    chart.addEventListener("pointerleave", function () { tip.style.display = "none"; });
  });

  document.querySelectorAll(".copy").forEach(function (one) {
    function mark(on) {
      document.querySelectorAll('.copy[data-e="' + one.dataset.e + '"]').forEach(function (copy) {
        copy.classList.toggle("on", on);
      });
    }
    one.addEventListener("mouseenter", function () { mark(true); });
    one.addEventListener("mouseleave", function () { mark(false); });
  });

  // Names and options are not broken at their hyphens.
  document.querySelectorAll("h1, .command pre").forEach(function (box) {
    var words = box.textContent.split(/(\S*-\S*)/);
    box.replaceChildren.apply(box, words.map(function (word, i) {
      if (i % 2 === 0) { return word; }
      var whole = document.createElement("span");
      whole.className = "whole";
      whole.textContent = word;
      return whole;
    }));
  });

  document.querySelectorAll(".command").forEach(function (box) {
    var button = document.createElement("button"), text = box.querySelector("pre");
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", function () {
      function said(word) {
        button.textContent = word;
        setTimeout(function () { button.textContent = "copy"; }, 2000);
      }
      function select() {
        window.getSelection().selectAllChildren(text);
        said(document.execCommand("copy") ? "copied" : "selected");
      }
      if (!navigator.clipboard) { return select(); }
      var command = text.textContent.trim().replace(/^\d+ +/, "");
      navigator.clipboard.writeText(command).then(function () { said("copied"); }, select);
    });
    box.insertBefore(button, text);
  });

  function reachable() {
    document.querySelectorAll(".scroll, .drawing, nav").forEach(function (box) {
      var head = box.closest("section") && box.closest("section").querySelector("h2");
      if (box.scrollWidth <= box.clientWidth) { return box.removeAttribute("tabindex"); }
      box.tabIndex = 0;
      if (box.tagName === "NAV") { return; }
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", (head ? head.textContent + ", " : "") + "scrolls sideways");
    });
  }
  reachable();
  window.addEventListener("resize", reachable);

  var shut = [];
  window.addEventListener("beforeprint", function () {
    shut = Array.prototype.slice.call(document.querySelectorAll("details:not([open])"));
    shut.forEach(function (one) { one.open = true; });
  });
  window.addEventListener("afterprint", function () {
    shut.forEach(function (one) { one.open = false; });
  });

  document.querySelectorAll(".sorts").forEach(function (table) {
    var body = table.tBodies[0], heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    var given = Array.prototype.slice.call(body.rows), rows = given.slice();
    var words = table.parentNode.querySelector("input");
    function key(row, i) {
      var cell = row.cells[i], number = cell && cell.getAttribute("data-n");
      return !cell ? "" : number === null ? cell.textContent : +number;
    }
    heads.forEach(function (head, i) {
      if (!head.textContent) { return; }
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", function () {
        var now = head.getAttribute("aria-sort"), down = now === "ascending" ? -1 : 1;
        heads.forEach(function (one) { one.removeAttribute("aria-sort"); });
        if (now === "descending") { return given.forEach(function (row) { body.appendChild(row); }); }
        head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
        rows.sort(function (a, b) {
          var x = key(a, i), y = key(b, i), kind = (typeof x > typeof y) - (typeof x < typeof y);
          if (x === "" || y === "") { return (x === "") - (y === ""); }
          return kind || down * (x < y ? -1 : x > y ? 1 : 0);
        });
        rows.forEach(function (row) { body.appendChild(row); });
      });
    });
    if (!words) { return; }
    words.addEventListener("input", function () {
      var wanted = words.value.toLowerCase().split(" "), n = 0;
      rows.forEach(function (row) {
        var text = row.textContent.toLowerCase();
        row.hidden = !wanted.every(function (word) { return text.indexOf(word) >= 0; });
        n += !row.hidden;
      });
      table.parentNode.querySelector("output").textContent = n + " of " + rows.length;
    });
  });
})();
