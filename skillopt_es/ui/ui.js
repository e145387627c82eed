// Keeps an open page fresh. Without it every page reads as it was when it was loaded.
"use strict";

const main = document.getElementById("main");
const live = document.getElementById("live");
const WAIT = 300; // milliseconds in which several reasons for a fresh look become one

function say(words, kind) {
  live.textContent = words;
  live.dataset.kind = kind;
}

function refused(answer) {
  const why = { 401: "signed out: open the address that skillopt-es ui printed", 404: "this page is gone" };
  say(why[answer.status] ?? `the server answers ${answer.status}`, "lost");
}

function later(action, wait) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  };
}

// --- a fresh look: the parts of the page are exchanged for those of the same page as it is now

const SHARE = 4; // a look that took a second is not followed by another for four: training must not wait for a page
let looking = false;
let again = false;
let took = 0;
let due = 0;

let unseen = false; // something has changed while nobody saw the page

function lookSoon() {
  unseen = document.hidden;
  if (!unseen) due ||= setTimeout(look, Math.max(WAIT, SHARE * took));
}

document.addEventListener("visibilitychange", () => {
  if (unseen) lookSoon();
});

async function look() {
  clearTimeout(due);
  due = 0;
  if (looking) {
    again = true;
    return;
  }
  looking = true;
  const began = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (answer.ok) exchange(new DOMParser().parseFromString(await answer.text(), "text/html"));
    else refused(answer);
  } catch {
    say("connection lost", "lost");
  } finally {
    looking = false;
    took = performance.now() - began;
    if (again) {
      again = false;
      lookSoon();
    }
  }
}

function exchange(fresh) {
  for (const old of document.querySelectorAll("[data-part]")) {
    const now = fresh.getElementById(old.id);
    if (!now || now.innerHTML === old.innerHTML || old.contains(document.activeElement) && isField(document.activeElement)) continue;
    const open = new Set([...old.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
    const focused = old.contains(document.activeElement) ? nameOf(document.activeElement) : null;
    const written = new Map([...old.querySelectorAll("input, select, textarea")].filter(isTouched).map((each) => [placeOf(each), each.value]));
    const marked = new Map([...old.querySelectorAll("input[type=checkbox]")].map((each) => [nameOf(each), each.checked]));
    old.replaceChildren(...now.childNodes);
    for (const box of old.querySelectorAll("input[type=checkbox]")) box.checked = marked.get(nameOf(box)) ?? box.checked;
    for (const field of old.querySelectorAll("input, select, textarea")) {
      if (written.has(placeOf(field)) && field.type !== "checkbox") field.value = written.get(placeOf(field));
    }
    for (const summary of old.querySelectorAll("details > summary")) {
      if (open.has(summary.textContent)) summary.parentElement.open = true;
    }
    if (focused) [...old.querySelectorAll("a[href], input")].find((each) => nameOf(each) === focused)?.focus();
  }
}

// What tells a link or a box from the others of a part.
function nameOf(element) {
  return element.getAttribute("href") ?? `${element.name}=${element.value}`;
}

// What tells a field from those of the same name in other forms of a part.
function placeOf(field) {
  return `${field.closest("details")?.querySelector("summary")?.textContent ?? ""}: ${field.name}`;
}

function isField(element) {
  return ["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName) && element.type !== "checkbox";
}

// --- what happens: each event once, in order, by its number

let last = -1;

function happened(event) {
  const said = JSON.parse(event.data);
  if (said.seq <= last) return;
  last = said.seq;
  main.dataset.seq = said.seq;
  const list = document.getElementById("happened");
  if (list) {
    list.prepend(line(said));
    while (list.children.length > Number(list.dataset.most)) list.lastElementChild.remove();
  }
  if (said.turned) lookSoon();
}

function line(said) {
  const row = document.createElement("li");
  row.dataset.seq = said.seq;
  const cell = (name, words) => {
    const made = document.createElement(name);
    made.textContent = words;
    row.append(made);
    return made;
  };
  cell("span", said.seq.toLocaleString("en")).className = "seq";
  cell("time", said.at.slice(11, 19)).dateTime = said.at;
  cell("b", said.type);
  cell("span", said.says);
  return row;
}

let working = false;

function doing(event) {
  const said = JSON.parse(event.data);
  const is = "stage" in said;
  if (is !== working) lookSoon();
  working = is;
  for (const tile of document.querySelectorAll("[data-now]")) {
    const name = tile.dataset.now;
    if (name in said) tile.textContent = said[name];
    const more = tile.parentElement.querySelector("small");
    if (more && `${name}-more` in said) more.textContent = said[`${name}-more`];
  }
  const bar = document.getElementById("progress");
  if (bar && is) {
    bar.max = Number(said.total);
    bar.value = Number(said.done);
  }
}

const AGAIN = 3000; // milliseconds before a stream that the server has refused is asked for again
let failure = "";

function listen(after) {
  const address = new URL(main.dataset.stream, location.href);
  if (after >= 0) address.searchParams.set("after", after);
  const stream = new EventSource(address);
  stream.addEventListener("happened", happened);
  stream.addEventListener("now", doing);
  stream.addEventListener("changed", lookSoon);
  stream.addEventListener("state", (event) => {
    const said = JSON.parse(event.data);
    failure = "";
    say(said.written === false ? "at rest" : "live", said.written === false ? "rest" : "live");
  });
  stream.addEventListener("failed", (event) => {
    failure = JSON.parse(event.data).says;
  });
  stream.onerror = () => {
    say(failure ? `not kept fresh (${failure}), trying again` : "connection lost, trying again", "lost");
    if (stream.readyState === EventSource.CLOSED) setTimeout(askWhy, AGAIN);
  };
}

// A browser gives a stream up that was answered with an error, and does not say with which.
async function askWhy() {
  const answer = await fetch(location.href).catch(() => null);
  if (answer?.status === 401 || answer?.status === 404) refused(answer);
  else listen(last);
}

if (main.dataset.stream) {
  working = document.querySelector('[data-now="stage"]') !== null;
  listen(last);
}

// --- forms that answer while they are filled in

for (const form of document.querySelectorAll("form[data-live]")) {
  const ask = later(() => {
    const asked = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...asked]) if (value === "") asked.delete(name);
    history.replaceState(null, "", asked.size ? `?${asked}` : location.pathname);
    look();
  }, WAIT);
  form.addEventListener("input", (event) => {
    const shown = event.target.parentElement?.querySelector("output");
    if (shown) shown.textContent = event.target.value;
    ask();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  if ([...form.elements].some(isTouched)) ask(); // whoever was quicker than this script has an answer, too
}

function isTouched(field) {
  if (field instanceof HTMLSelectElement) return [...field.options].some((each) => each.selected !== each.defaultSelected);
  if (field instanceof HTMLTextAreaElement) return field.value !== field.defaultValue;
  return field instanceof HTMLInputElement && (field.value !== field.defaultValue || field.checked !== field.defaultChecked);
}

// --- a form that is checked while it is filled in: by the same request as its button makes

for (const form of document.querySelectorAll("form[data-check]")) {
  let asked = 0;
  const check = later(async () => {
    const mine = ++asked;
    const asking = fetch(form.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    const answer = await asking.catch(() => null);
    if (!answer) return say("connection lost", "lost");
    if (!answer.ok) return refused(answer);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("checked");
    if (mine !== asked || !fresh) return;
    const wrong = [...fresh.querySelectorAll(".problem p")].map((each) => each.textContent).join(" ");
    for (const field of form.elements) {
      if (!field.name.includes(".")) continue;
      const named = new RegExp(`(?<![\\w.])${field.name.replaceAll(".", "\\.")}(?!\\w|\\.\\w)`).test(wrong);
      field.setAttribute("aria-invalid", String(named));
    }
    document.getElementById("checked").replaceChildren(...fresh.childNodes);
  }, 2 * WAIT);
  form.addEventListener("input", check);
}
