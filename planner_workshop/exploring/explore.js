"use strict";
const $ = (id) => document.getElementById(id);
const TOKEN = document.querySelector("meta[name=form-token]").content;
const PATIENCE = { slider: 250, text: 700 }; // ms of quiet before a change is answered
const POLL = 200; // ms

const made = (tag, attributes = {}, ...inner) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...inner);
  return node;
};

async function ask(path, body) {
  const headers = { "content-type": "application/json", "x-form-token": TOKEN };
  const words = body === undefined ? {} : { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(path, words);
  const text = await response.text();
  let value;
  try { value = JSON.parse(text); } catch { value = { message: text }; }
  if (!response.ok) throw new Error(value.message || response.statusText);
  return value;
}

let form, command = "plan";
const values = {}; // texts of options by name, of all commands: what one has not, another may
const flags = {};
let turn = 0, timer = 0; // the last request that was begun, and the one that waits
let shown = null; // the answer on the page
let current = 0; // number of the request that is at work
let pinned = [];

// The form: fields of a command, and what stands in them.

const rowsOf = (name) => form.commands.find((it) => it.name === name).groups.flatMap((it) => it.fields);
const isFlag = (row) => row.value === "";

function state() {
  const options = {};
  for (const row of rowsOf(command)) {
    if (isFlag(row)) { if (flags[row.name]) options[row.name] = []; }
    else {
      const texts = (values[row.name] || []).map((it) => it.trim()).filter(Boolean);
      if (texts.length) options[row.name] = texts;
    }
  }
  return { command, options };
}

function fill(filled) {
  command = filled.command;
  for (const row of rowsOf(command)) {
    if (isFlag(row)) flags[row.name] = row.name in filled.options;
    else values[row.name] = [...(filled.options[row.name] || [])];
  }
  draw();
}

function draw() {
  for (const radio of $("commands").querySelectorAll("input")) radio.checked = radio.value === command;
  const own = form.commands.find((it) => it.name === command);
  $("words").textContent = own.words;
  const open = new Set([...$("fields").querySelectorAll("details[open]")].map((it) => it.dataset.title));
  $("fields").replaceChildren(...own.groups.map((group) => {
    const fields = group.fields.map(drawn);
    if (!group.title) return made("section", {}, ...fields);
    const summary = made("summary", {}, `${group.title} `, made("output"));
    return made("details", { "data-title": group.title, open: open.has(group.title) }, summary, ...fields);
  }));
  mark();
}

function drawn(row) {
  const words = row.usual && !isFlag(row) ? `${row.words} [${row.usual}]` : row.words;
  const help = made("small", {}, ...words.split("`").map((it, i) => (i % 2 ? made("code", {}, it) : it)));
  const field = made("section", { class: row.is_pair ? "field pair" : "field", "data-option": row.name });
  const label = row.name.slice(2).replaceAll("-", " ");
  if (isFlag(row)) {
    const box = made("input", { type: "checkbox", name: row.name });
    box.checked = Boolean(flags[row.name]);
    box.addEventListener("change", () => { flags[row.name] = box.checked; changed(0); });
    field.append(made("label", { class: "check" }, box, label), help);
    return field;
  }
  const texts = values[row.name] && values[row.name].length ? values[row.name] : [""];
  values[row.name] = [...texts];
  texts.forEach((text, i) => field.append(input(row, label, text, i)));
  const slider = form.sliders[row.name];
  if (slider) field.append(range(row, label, slider));
  field.append(help);
  return field;
}

function input(row, label, text, i) {
  const name = made("span", { class: "name" }, made("b", {}, label), made("i", {}, row.value));
  const set = (value, wait) => { values[row.name][i] = value; mark(); changed(wait); };
  const choices = form.lists[row.list] || [];
  if (row.is_closed) {
    const select = made("select", { name: row.name });
    select.append(made("option", { value: "" }, row.usual ? `${row.usual} (usual)` : "–"));
    for (const it of choices) select.append(made("option", { value: it }, it));
    if (text && !choices.includes(text)) select.append(made("option", { value: text }, text));
    select.value = text;
    select.addEventListener("change", () => set(select.value, 0));
    return made("label", {}, name, select);
  }
  const box = made("input", {
    type: "text", name: row.name, placeholder: row.usual || (row.example && `like ${row.example}`), spellcheck: "false",
    autocapitalize: "off", list: choices.length ? listed(row) : undefined,
  });
  box.value = text;
  box.addEventListener("input", () => set(box.value, PATIENCE.text));
  const line = made("span", { class: "row" }, box);
  if (row.repeats && i === values[row.name].length - 1) {
    const more = made("button", { type: "button", title: `another ${label}`, "aria-label": `another ${label}` }, "+");
    more.addEventListener("click", () => {
      values[row.name].push("");
      draw();
      [...document.querySelectorAll(`[data-option="${row.name}"] input[type=text]`)].pop().focus();
    });
    line.append(more);
  }
  return made("label", {}, ...(i ? [] : [name]), line);
}

function listed(row) {
  const id = `list-${row.list.replace(/\W+/g, "-")}`;
  if (!$(id)) {
    document.body.append(made("datalist", { id }, ...form.lists[row.list].map((value) => made("option", { value }))));
  }
  return id;
}

// Sliders: a logarithmic scale, two digits; at one end there is no limit.

const STEPS = 200;
const digits = (value) => String(+value.toPrecision(2));

function written(value, pattern) {
  if (pattern !== "s") return pattern.replace("{}", digits(value));
  return value < 0.995 ? `${digits(value * 1e3)}ms` : `${digits(value)}s`;
}

function read(text, pattern) {
  const number = /^\s*[$]?\s*([\d.]+)\s*(ms|s|min)?/.exec(text || "");
  if (!number || /=/.test(text)) return NaN;
  if (pattern !== "s") return +number[1];
  return number[1] * ({ ms: 1e-3, s: 1, min: 60 }[number[2]] || NaN);
}

function range(row, label, slider) {
  const span = Math.log(slider.most / slider.least);
  const bar = made("input", { type: "range", min: 0, max: STEPS, step: 1, name: `slide${row.name}`, "aria-label": `slide ${label}` });
  const none = slider.none === "left" ? 0 : STEPS;
  const follow = () => {
    const value = read(values[row.name][0], slider.pattern);
    bar.value = value > 0 ? Math.round((STEPS * Math.log(value / slider.least)) / span) : none;
    bar.setAttribute("aria-valuetext", values[row.name][0] || "none");
  };
  bar.addEventListener("input", () => {
    const value = slider.least * Math.exp((span * bar.value) / STEPS);
    const text = +bar.value === none ? "" : written(value, slider.pattern);
    values[row.name][0] = text;
    bar.setAttribute("aria-valuetext", text || "none");
    bar.closest(".field").querySelector("input[type=text]").value = text;
    mark(bar);
    changed(PATIENCE.slider);
  });
  bar.follow = follow;
  follow();
  return bar;
}

function mark(moved) {
  for (const field of $("fields").querySelectorAll(".field")) {
    const texts = values[field.dataset.option] || [];
    field.classList.toggle("set", texts.some(Boolean) || Boolean(flags[field.dataset.option]));
    const bar = field.querySelector("input[type=range]");
    if (bar && bar !== moved) bar.follow();
  }
  for (const group of $("fields").querySelectorAll("details")) {
    const n = group.querySelectorAll(".field.set").length;
    group.querySelector("output").textContent = n ? `${n} set` : "";
  }
}

// Requests: a change is answered when it stands for a while, and ends what was at work.

function changed(wait) {
  clearTimeout(timer);
  timer = setTimeout($("auto").checked ? answer : showLine, wait);
}

async function showLine() {
  timer = 0;
  try { $("line").textContent = (await ask("/line", state())).line; } catch (error) { say(error.message); }
}

async function answer() {
  clearTimeout(timer);
  timer = 0;
  const mine = ++turn;
  $("result").classList.add("stale");
  try {
    const job = await begin("");
    if (mine === turn) await follow(job, mine);
  } catch (error) {
    if (mine === turn) lost(error);
  }
}

function begin(target) {
  const letter = innerWidth > 960 ? 7.6 : 6.4;
  const columns = Math.max(60, Math.min(110, Math.floor(($("result").clientWidth - 60) / letter)));
  return ask("/jobs", { ...state(), columns, target });
}

async function follow(job, mine) {
  $("line").textContent = job.line;
  $("examples").hidden = true;
  $("status").textContent = "";
  const ended = await end(job, mine);
  if (!ended) return;
  if (ended.state === "done") history.pushState(null, "", `#${ended.number}`);
  show(ended);
  refresh();
}

// A request when it has ended; nothing where another was begun meanwhile.
async function end(job, mine) {
  current = job.number;
  $("waiting").hidden = false;
  while (job.state === "running" && mine === turn) {
    $("progress").textContent = $("brief").textContent = job.progress || "working";
    await new Promise((resolve) => setTimeout(resolve, POLL));
    if (mine === turn) job = await ask(`/jobs/${job.number}`);
  }
  if (mine !== turn) return null;
  $("waiting").hidden = true;
  return job;
}

function lost(error) {
  $("result").classList.remove("stale");
  $("waiting").hidden = true;
  say(`error: ${error.message.replace(/^error: /, "")}`);
}

function say(text) { message($("message"), [{ text }], false); }

function message(node, parts, isNote) {
  node.hidden = !parts.some((it) => it.text);
  node.classList.toggle("note", isNote);
  node.replaceChildren(...parts.map((part) => {
    if (!part.fills) return part.text;
    const use = made("button", { type: "button", title: "Fill the form with this" }, part.text.replaceAll("`", ""));
    use.addEventListener("click", () => { fill(part.fills); answer(); });
    return use;
  }));
}

// Answers: the page that the command writes, in a frame of its own.

function show(job) {
  shown = job;
  $("waiting").hidden = true;
  $("examples").hidden = true;
  $("refused").hidden = true;
  $("launched").textContent = "";
  $("line").textContent = job.line;
  const has = new Set(job.files);
  message($("message"), job.message, job.code === 0);
  const took = job.seconds ? `${job.seconds} s` : "";
  $("status").replaceChildren(...(job.code === 0 ? [made("b", {}, job.answer), ` · ${took}`] : [{ 1: "no plan", 2: "not read", 3: "ended" }[job.code] || "failed", ` · ${took}`]));
  $("brief").textContent = `↓ ${job.answer.replace(/^error: /, "")}`;
  $("brief").hidden = false;
  document.title = job.code === 0 ? `${job.answer.split(",")[0]} · plan explore` : "plan explore";
  const page = $("page");
  $("result").classList.remove("stale");
  const isError = job.message[0].text.startsWith("error:"); // whose page says no more
  page.hidden = isError || !has.has("answer.html");
  if (!page.hidden && page.dataset.number !== String(job.number)) {
    page.dataset.number = job.number;
    page.contentWindow.location.replace(`/jobs/${job.number}/shown.html`);
  }
  for (const field of $("fields").querySelectorAll(".field")) {
    field.classList.toggle("faulty", job.faulty.includes(field.dataset.option));
    if (job.faulty.includes(field.dataset.option)) {
      const group = field.closest("details");
      if (group) group.open = true;
    }
  }
  $("export").hidden = job.state !== "done" || job.code === 2;
  const links = { request: "request.toml", html: "answer.html", json: "answer.json", csv: "answer.csv", svg: "map.svg" };
  for (const [name, file] of Object.entries(links)) {
    const is = has.has(file) || name === "request";
    if (is) $(`keep-${name}`).href = `/jobs/${job.number}/${file}`;
    else $(`keep-${name}`).removeAttribute("href");
  }
  $("launching").hidden = job.code !== 0 || !form.launched.includes(job.command);
  for (const item of $("history").children) item.classList.toggle("shown", item.dataset.number === String(job.number));
}

addEventListener("message", (event) => {
  if (event.source !== $("page").contentWindow || !event.data) return;
  const { height, top, fill: text } = event.data;
  if (height > 0) $("page").style.height = `${Math.min(height, 60000)}px`;
  if (typeof top === "number") scrollBy({ top: $("page").getBoundingClientRect().top + top - 60 });
  if (typeof text === "string") fillLine(text, lost);
});

async function fillLine(line, refuse) {
  try { fill(await ask("/line", { line })); } catch (error) { refuse(error); return; }
  answer();
}

// History: answers of this session.

async function refresh() {
  const jobs = await ask("/jobs");
  pinned = pinned.filter((number) => jobs.some((it) => it.number === number));
  $("past").querySelector("output").textContent = jobs.length;
  $("nothing-yet").hidden = jobs.length > 0;
  $("history").replaceChildren(...jobs.map((job) => {
    const go = made("button", { type: "button", class: "go" }, made("b", {}, job.answer.replace(/^error: |`/g, "")),
      made("small", {}, `${job.at} · ${job.seconds} s`), made("code", {}, job.line));
    go.addEventListener("click", () => { past(false); location.hash = `#${job.number}`; });
    const isPinned = pinned.includes(job.number);
    const pin = made("button", { type: "button", class: "pin", "aria-pressed": String(isPinned), "aria-label": `pin ${job.answer}` }, isPinned ? "pinned" : "pin");
    pin.addEventListener("click", () => {
      pinned = isPinned ? pinned.filter((it) => it !== job.number) : [...pinned, job.number].slice(-2);
      refresh();
    });
    const classes = [job.code ? "no" : "", shown && shown.number === job.number ? "shown" : ""].join(" ");
    return made("li", { class: classes, "data-number": job.number }, go, pin);
  }));
  compare(pinned.map((number) => jobs.find((it) => it.number === number)));
}

// The history stands beside the answer where there is room, else over it.
function past(isOpen) {
  $("aside").classList.toggle("open", isOpen);
  $("past").setAttribute("aria-expanded", String(isOpen));
}

function compare(pair) {
  $("compared").hidden = pair.length < 2;
  if (pair.length < 2) return;
  const [head, body] = [$("compared").querySelector("thead"), $("compared").querySelector("tbody")];
  const text = (job, name) => (name in job.options ? job.options[name].join(", ") || "yes" : "–");
  const names = [...new Set(pair.flatMap((it) => Object.keys(it.options)))];
  const differ = names.filter((name) => text(pair[0], name) !== text(pair[1], name));
  const row = (title, cells) => made("tr", {}, made("td", {}, title), ...cells.map((it) => made("td", {}, it)));
  head.replaceChildren(made("tr", {}, made("th", {}, ""), ...pair.map((it) => made("th", {}, it.at))));
  body.replaceChildren(
    ...(pair[0].command === pair[1].command ? [] : [row("command", pair.map((it) => it.command))]),
    ...differ.map((name) => row(name.slice(2), pair.map((it) => text(it, name)))),
    row("answer", pair.map((it) => it.answer)),
  );
}

async function goTo() {
  const number = Number(location.hash.slice(1));
  if (!number || (shown && shown.number === number)) return;
  const mine = ++turn;
  $("result").classList.add("stale");
  try {
    const job = await ask(`/jobs/${number}`);
    if (mine !== turn) return;
    fill(job);
    show(job);
  } catch (error) { lost(error); }
}

// Export.

async function launch() {
  const mine = ++turn;
  $("launched").textContent = "";
  try {
    const job = await end(await begin($("target").value), mine);
    if (!job) return;
    message($("refused"), job.code ? job.message : [], false);
    if (job.code) return;
    made("a", { href: `/jobs/${job.number}/launch.zip`, download: true }).click();
    $("launched").textContent = `${job.files.length} files`;
  } catch (error) { lost(error); }
}

async function copy() {
  const text = $("line").textContent;
  try { await navigator.clipboard.writeText(text); } catch {
    getSelection().selectAllChildren($("line"));
    document.execCommand("copy");
  }
  $("copy").textContent = "Copied";
  setTimeout(() => { $("copy").textContent = "Copy command"; }, 1500);
}

async function main() {
  history.replaceState(null, "", `/${location.hash}`); // the token is a cookie by now
  form = await ask("/form");
  for (const it of form.commands) {
    const radio = made("input", { type: "radio", name: "command", value: it.name });
    radio.addEventListener("change", () => { command = radio.value; draw(); changed(0); });
    $("commands").append(made("label", {}, radio, made("span", {}, it.name)));
  }
  for (const name of form.targets) $("target").append(made("option", { value: name }, name));
  for (const it of form.examples) {
    const use = made("button", { type: "button" }, made("b", {}, it.title), made("code", {}, it.line));
    use.addEventListener("click", () => fillLine(it.line, lost));
    $("examples").querySelector("ul").append(made("li", {}, use));
  }
  $("request").addEventListener("submit", (event) => { 
    event.preventDefault();
    if (innerWidth <= 960) $("result").scrollIntoView();
    answer();
  });
  $("fill").addEventListener("click", () => {
    $("unread").hidden = true;
    fillLine($("pasted").value, (error) => message($("unread"), [{ text: error.message }], false));
  });
  $("cancel").addEventListener("click", () => ask(`/jobs/${current}/cancel`, {}).catch(lost));
  $("past").addEventListener("click", () => past($("past").getAttribute("aria-expanded") !== "true"));
  $("close").addEventListener("click", () => past(false));
  $("brief").addEventListener("click", (event) => { event.preventDefault(); $("result").scrollIntoView(); });
  addEventListener("keydown", (event) => { if (event.key === "Escape") past(false); });
  $("copy").addEventListener("click", copy);
  $("launch").addEventListener("click", launch);
  addEventListener("hashchange", goTo);
  addEventListener("popstate", goTo);
  fill(form.begun || { command, options: {} });
  await refresh();
  if (location.hash) await goTo();
  else if (form.begun) answer();
  else { $("examples").hidden = false; showLine(); }
}

main().catch(lost);
