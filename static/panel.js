// What the pages do by themselves: refresh, dialogs, copy buttons, keys, local
// times. Every page works without it.

const main = document.getElementById("main");
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

// Times. The server wrote a text as seen from its clock; it counts on here, from
// the instant the answer came, so that a wrong clock on this machine does not matter.
let skew = 0;
const syncClock = (inside = document) => {
  const fresh = inside.querySelector("[data-fresh]");
  if (fresh) skew = Date.parse(fresh.dataset.fresh) - Date.now();
};

function coarse(s, waiting) {
  const pair = (big, bigUnit, small, smallUnit) => {
    const rest = Math.floor((s % big) / small);
    return `${Math.floor(s / big)}\u00a0${bigUnit}` + (rest ? ` ${rest}\u00a0${smallUnit}` : "");
  };
  if (s < 60) return `${Math.floor(s)}\u00a0s`;
  if (waiting && s < 300) return pair(60, "min", 1, "s");
  if (s < 3600) return `${Math.floor(s / 60)}\u00a0min`;
  if (waiting && s < 86400) return pair(3600, "h", 60, "min");
  if (s < 172800) return `${Math.floor(s / 3600)}\u00a0h`;
  return `${Math.floor(s / 86400)}\u00a0d`;
}

function tellTimes() {
  const now = Date.now() + skew;
  for (const t of all("time[data-rel]")) {
    const s = (Date.parse(t.dateTime) - now) / 1000;
    if (s < -30 * 86400) continue;
    const text = s >= 1 ? `in ${coarse(s, true)}` : s > 0 ? "now" : s > -5 ? "just now" : `${coarse(-s)} ago`;
    if (t.textContent !== text) t.textContent = text;
  }
  for (const mark of all("[data-fresh]")) {
    const s = (now - Date.parse(mark.dataset.fresh)) / 1000;
    mark.classList.toggle("on", reachable);
    mark.classList.toggle("off", !reachable);
    mark.textContent = `${reachable ? "Live, updated" : "Not reachable, seen"} ${s < 2 ? "just now" : coarse(s) + " ago"}`;
  }
}

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

// prepare adds to fresh markup what only makes sense with scripts.
function prepare(inside) {
  for (const t of all("time[title]", inside)) {
    if (new Date().getTimezoneOffset() !== 0) t.title += `\n${local.format(new Date(t.dateTime))} here`;
  }
  if (navigator.clipboard) for (const b of all("[data-copy]", inside)) b.hidden = false;
}

// Parts that refresh. print is what a row says apart from relative times, as the
// server sent it; only a row that says something else is exchanged.
const printed = new WeakMap();
const print = (el) => el.outerHTML.replace(/(<time[^>]*>)[^<]*/g, "$1");
const remember = (inside) => all("[data-live], [data-key]", inside).forEach((el) => printed.set(el, print(el)));

// held says whether a person has the element in hand: it must not be replaced. A row is in hand while it is focused; a part
// gets its focus back. The mouse holds what it presses, so that the click arrives, and what it is on until it rests. What was
// acted on is watched: it changes all the same.
let moved = -Infinity, stale = false, restless = false;
const watched = new Set();
function held(el, row) {
  const active = document.activeElement, selection = getSelection();
  const over = row ? el.matches(":hover") : el.querySelector(":is(a, button, summary, input, select):hover") !== null;
  const grasped = over && !rests() && !watched.has(el.dataset.key ?? "page");
  const hold = grasped || el.matches(":active") || (!selection.isCollapsed && selection.containsNode(el, true))
    || el.querySelector("details[open], [aria-selected=true], :checked:not(option)") !== null
    || (el.contains(active) && active !== el && (row || active.matches("input, select, textarea")));
  stale ||= hold;
  restless ||= grasped;
  return hold;
}
const rests = () => performance.now() - moved > 3000;

// letGo catches up with what was held.
const letGo = () => { if (stale) { stale = false; refresh(); } };
for (const kind of ["pointermove", "pointerdown"]) addEventListener(kind, () => { moved = performance.now(); }, true);
for (const kind of ["focusout", "pointerup", "pointercancel"]) addEventListener(kind, () => setTimeout(letGo), true);
addEventListener("toggle", letGo, true);
document.addEventListener("selectionchange", () => { if (getSelection().isCollapsed) letGo(); });

function swap(part, acted) {
  const old = document.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
  if (!old || print(part) === printed.get(old)) return;
  const [from, to] = [old.querySelector("[data-rows]"), part.querySelector("[data-rows]")];
  const list = from && !old.querySelector("header.page");
  if (list && to) return merge(old, from, to, part);
  if (acted || !held(old, list)) put(old, part);
}

// alike is what a control is known by after its part was replaced.
const alike = (el) => el.getAttribute("href") ?? el.getAttribute("formaction") ?? el.form?.getAttribute("action") ?? el.textContent;

function put(old, next) {
  const had = old.contains(document.activeElement) ? document.activeElement : null;
  remember(next.parentNode ?? next);
  printed.set(next, print(next));
  prepare(next);
  old.replaceWith(next);
  if (!had) return;
  const same = all(had.localName, next).find((el) => alike(el) === alike(had));
  (same ?? next.querySelector(".main, button, a") ?? main).focus({ preventScroll: true });
}

function merge(part, from, to, next) {
  const before = new Map([...from.rows].map((r) => [r.dataset.key, r]));
  const whole = print(next);
  let newer = 0, left = 0;
  for (const row of [...to.rows]) {
    const old = before.get(row.dataset.key);
    before.delete(row.dataset.key);
    if (!old) { newer++; continue; }
    if (print(row) === printed.get(old)) continue;
    if (held(old, !watched.has(row.dataset.key))) { left++; continue; }
    const copy = row.cloneNode(true);
    put(old, copy);
    copy.classList.add("fresh");
  }
  part.querySelector(".newer")?.remove();
  if (newer > 0) {
    const show = Object.assign(document.createElement("button"), { type: "button", className: "newer", textContent: `${newer} newer: show` });
    show.onclick = () => { put(part, next); next.querySelector(".main")?.focus(); };
    from.closest("table").before(show);
    return;
  }
  for (const [key, gone] of before) {
    if (held(watched.has(key) ? gone : from, !watched.has(key))) { left++; continue; }
    if (gone.contains(document.activeElement)) main.focus({ preventScroll: true });
    gone.remove();
  }
  if (left === 0) printed.set(part, whole);
}

async function fetchParts(url, names, options = {}) {
  const answer = await fetch(url, { ...options, headers: { "X-Fragment": names.join(",") } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return { answer, page };
}

const liveNames = () => all("[data-live]").map((el) => el.dataset.live);
let reachable = true, asking = false, again = false;

async function refresh() {
  if (asking) { again = true; return; }
  if (document.hidden || document.querySelector("dialog[open]")) return;
  const names = liveNames();
  if (names.length === 0) return;
  asking = true;
  try {
    const { answer, page } = await fetchParts(location.href, names);
    if (answer.redirected) return location.reload(); // logged out meanwhile
    reachable = answer.ok;
    if (answer.ok) {
      all("[data-live]", page).forEach((part) => swap(part));
      for (const mark of all("[data-fresh]")) mark.dataset.fresh = new Date(Date.now() + skew).toISOString();
    }
  } catch { reachable = false; }
  tellTimes();
  setTimeout(() => { asking = false; if (again) { again = false; refresh(); } }, 1000);
}

// Hints come over one stream, closed while the page is hidden. When there is no
// stream the page asks every 10 seconds.
let stream = null;
function listen() {
  stream?.close();
  stream = null;
  if (document.hidden || !main?.dataset.stream) return;
  stream = new EventSource(main.dataset.stream);
  stream.onmessage = refresh;
}
document.addEventListener("visibilitychange", () => { listen(); refresh(); });
addEventListener("pagehide", () => stream?.close());
addEventListener("pageshow", (e) => { if (e.persisted) { listen(); refresh(); } });
setInterval(() => { if (stream?.readyState !== EventSource.OPEN) refresh(); }, 10000);
setInterval(() => {
  tellTimes();
  if (restless && rests()) { restless = false; letGo(); }
}, 1000);

// Actions. An inline form is answered with the changed row and a sentence.
document.addEventListener("submit", async (e) => {
  const form = e.target, by = e.submitter ?? form;
  if (!form.matches("form[data-inline]")) return;
  e.preventDefault();
  if (by.dataset.sent) return;
  by.dataset.sent = "1";
  const action = by.getAttribute("formaction") ?? form.getAttribute("action");
  const flash = document.getElementById("flash");
  const say = (text) => { flash.className = "flash failed"; flash.replaceChildren(Object.assign(document.createElement("span"), { textContent: text })); };
  try {
    const { answer, page } = await fetchParts(action, ["flash", ...liveNames()], { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (!answer.ok) return say(page.querySelector(".sentence, .error p:not(.faint)")?.textContent.trim() ?? "That did not work. Load the page again and look.");
    const parts = all("[data-live]", page);
    if (new URL(answer.url).pathname !== location.pathname || parts.length === 0) return location.assign(answer.url);
    watched.add(by.closest("[data-key]")?.dataset.key ?? "page");
    const next = page.getElementById("flash");
    if (next) { flash.className = next.className; flash.replaceChildren(...next.childNodes); }
    parts.forEach((part) => swap(part, true));
    tellTimes();
  } catch { say("The server could not be reached; nothing is known to have happened."); } finally { delete by.dataset.sent; }
});
document.addEventListener("formdata", (e) => {
  if (e.target.method === "get") for (const [name, value] of [...e.formData]) if (value === "") e.formData.delete(name);
});
let pointer = false;
document.addEventListener("pointerdown", () => { pointer = true; }, true);
document.addEventListener("change", (e) => { if (pointer && e.target.matches("select[data-submit]")) e.target.form.requestSubmit(); });

// Dialogs: an action that asks first is shown as one.
function openAsk(ask) {
  const sheet = ask.querySelector(".sheet");
  const dialog = document.createElement("dialog");
  const back = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "Not now", onclick: () => dialog.close() });
  dialog.setAttribute("aria-label", sheet.dataset.dialog);
  sheet.querySelector(".actions").prepend(back);
  dialog.append(sheet);
  document.body.append(dialog);
  const menu = ask.closest(".menu");
  if (menu) menu.open = false;
  dialog.onclick = (e) => { if (e.target === dialog) dialog.close(); };
  dialog.onclose = () => { back.remove(); ask.append(sheet); dialog.remove(); (menu ?? ask).querySelector("summary").focus(); };
  dialog.showModal();
  (dialog.querySelector(":is(input:not([type=hidden]), textarea, select)") ?? back).focus();
}
document.addEventListener("click", (e) => {
  const summary = e.target.closest(".ask > summary");
  if (summary) { e.preventDefault(); openAsk(summary.parentElement); }
  for (const menu of all(".menu[open]")) if (!menu.contains(e.target)) menu.open = false;
  const copy = e.target.closest("[data-copy]");
  if (copy) navigator.clipboard.writeText(copy.dataset.copy).then(() => {
    copy.classList.add("done");
    setTimeout(() => copy.classList.remove("done"), 1500);
  });
});

// Keys.
function step(by) {
  const rows = all("tr[data-key]");
  const at = rows.indexOf(document.activeElement.closest("tr"));
  const row = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1)];
  row?.querySelector(".main, a")?.focus();
  row?.scrollIntoView({ block: "nearest" });
}
document.addEventListener("keydown", (e) => {
  pointer = false;
  const menu = e.key === "Escape" && document.querySelector(".menu[open]");
  if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog")) return;
  const act = {
    "/": () => document.querySelector("[data-search]")?.focus(),
    j: () => step(1),
    k: () => step(-1),
    r: () => (document.activeElement.closest("tr")?.querySelector("[data-retry]") ?? document.querySelector("header.page [data-retry]"))?.click(),
    "?": () => document.getElementById("help")?.showModal(),
  }[e.key];
  if (act) { e.preventDefault(); act(); }
});

const current = document.querySelector(".navs [aria-current]");
if (current) {
  const navs = current.closest(".navs");
  if (current.offsetLeft + current.offsetWidth > navs.clientWidth) navs.scrollLeft = current.offsetLeft - 60;
}
remember(document);
syncClock();
prepare(document);
all(".ask[open]").forEach((ask) => { ask.open = false; openAsk(ask); });
listen();
tellTimes();
