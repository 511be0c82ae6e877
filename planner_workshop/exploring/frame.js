(function () {
  var tell = function (news) { parent.postMessage(news, "*"); };
  var size = function () {
    tell({ height: Math.ceil(document.documentElement.getBoundingClientRect().height) + 40 });
  };
  new ResizeObserver(size).observe(document.documentElement);
  addEventListener("load", size);
  size(); // an observer waits until the frame is on the screen
  document.addEventListener("click", function (event) {
    var link = event.target.closest('a[href^="#"]');
    var to = link && document.getElementById(link.getAttribute("href").slice(1));
    if (to) { tell({ top: to.getBoundingClientRect().top }); }
  });
  document.querySelectorAll("code, pre").forEach(function (code) {
    var text = code.textContent;
    if (!/^plan .* /.test(text) || code.closest(".faint, header, footer")) { return; }
    var fill = function () { tell({ fill: text }); };
    code.tabIndex = 0;
    code.setAttribute("role", "button");
    code.title = "Fill the form with this command";
    code.style.cursor = "pointer";
    code.style.textDecoration = "underline dotted";
    code.addEventListener("click", fill);
    code.addEventListener("keydown", function (event) { if (event.key === "Enter") { fill(); } });
  });
})();
