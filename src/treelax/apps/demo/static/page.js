// What all parts of the page share: its state, its pictures, and how it asks the server for trees.

import { exampleOf } from "./examples.js";
import { toHash, toRequest } from "./state.js";
import { changesOf, follow, freeAll } from "./texts.js";

export const GONE = "The server does not answer. Is treelax demo still running?";
export const byId = (id) => document.getElementById(id);
export const randomSeed = () => Math.floor(Math.random() * 1e6);

export const page = {
  info: null, // what the server has
  state: null,
  pictures: null,
  notice: "", // for the status line, once the next picture is there
  whenDrawn: [],
  whenFailed: [],
};

// The text that the pictures show, with its changes.
export const shownText = () => page.state.texts[page.state.shown];

// ------------------------------------------------------------------ asking the server

let asking = false;
let changed = false;
let begun = 0; // when the change was made that the next picture shows

// Ask for new trees; while an answer is on its way, only the newest state waits.
export function refresh() {
  if (!changed) begun = performance.now();
  changed = true;
  writeLink();
  if (!asking) keepAsking();
}

async function keepAsking() {
  asking = true;
  try {
    while (changed) {
      changed = false;
      const start = begun;
      const found = await newest();
      if (found === null) continue;
      const { status, wait, reply, plain } = found;
      if (status === 200) {
        show(reply, start);
      } else if (status === 503) {
        say(reply.detail);
        await new Promise((later) => setTimeout(later, 1000 * wait));
        changed = true;
      } else {
        fail(reply.detail, plain);
      }
      writeLink(); // again: the answer may have moved arcs to other words
    }
  } finally {
    asking = false;
  }
}

// Trees of the state, or null if they do not fit it: it changed too much meanwhile, or its changes had to
// follow the words that the server found.
async function newest() {
  const { texts, shown } = page.state;
  const overtaken = () => changed && (page.state.texts !== texts || page.state.shown !== shown);
  const found = await ask(toRequest(page.state));
  if (overtaken()) return null;
  let answered = found;
  if (found.status === 409 && texts.some(changesOf)) {
    // the changes leave no tree: to see them, and to take one back, it needs pictures without them
    answered = await ask(toRequest(page.state, true));
    if (overtaken()) return null;
    if (answered.status === 200) found.plain = answered.reply;
  }
  if (answered.status !== 200 || !moves(answered)) return found;
  changed = true;
  return null;
}

// Tell the texts which words they have, and the one that is shown which arc was chosen for it. Whether
// something changed by hand is elsewhere now, or gone.
function moves({ asked, reply }) {
  const { texts } = page.state;
  const own = asked.shown === "second" ? 1 : 0;
  const before = JSON.stringify(toRequest(page.state));
  let lost = follow(texts[own], reply.words);
  if (reply.other_words) lost += follow(texts[1 - own], reply.other_words);
  if (lost) page.notice = `${countedChanges(lost)} dropped: the words are gone.`;
  if (JSON.stringify(toRequest(page.state)) !== before) return true;
  if (asked.target === null && texts[own].open) Object.assign(texts[own], reply.target, { open: changed });
  return false;
}

export const countedChanges = (count) => (count === 1 ? "1 change was" : `${count} changes were`);

async function ask(asked) {
  try {
    const response = await fetch("/api/trees", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(asked),
    });
    const wait = response.headers.get("retry-after") ?? 1;
    return { asked, status: response.status, wait, reply: await response.json() };
  } catch {
    return { asked, reply: { detail: GONE } };
  }
}

function show(reply, start) {
  byId("problem").hidden = true;
  tell();
  byId("pictures").classList.remove("stale", "empty", "arcs");
  page.pictures.draw(reply, page.state);
  for (const act of page.whenDrawn) act();
  requestAnimationFrame(() =>
    setTimeout(() => {
      if (!byId("problem").hidden) return; // something has gone wrong since
      const { duration } = performance.measure("picture", { start, end: performance.now() });
      const count = reply.words.length - reply.null;
      const words = count === 1 ? "1 word" : `${count} words`;
      byId("timing").textContent = `${words}, drawn in ${duration.toFixed(0)} ms`;
    }),
  );
}

function tell() {
  say(page.notice);
  page.notice = "";
}

function say(text) {
  byId("status").textContent = text;
}

// plain: what the server says without the changes, if these are what it cannot answer.
export function fail(text, plain = null) {
  tell();
  byId("timing").textContent = "";
  byId("alert").textContent = text;
  byId("problem").hidden = false;
  byId("side").classList.remove("empty");
  showWayOut(text);
  byId("pictures").classList.add("stale");
  byId("pictures").classList.toggle("arcs", plain !== null);
  if (plain) {
    byId("pictures").classList.remove("empty");
    page.pictures.drawChanges(plain, page.state);
  }
  page.pictures?.forgetAnswer();
  for (const act of page.whenFailed) act();
}

function showWayOut(text) {
  const button = byId("way-out");
  const [says, act] = (page.state && text !== GONE && wayOut(text)) || [];
  button.hidden = !says;
  button.textContent = says ?? "";
  button.onclick = () => {
    act();
    byId("text").focus();
  };
}

// What leads to a picture: its name, and what it does; null if there is nothing.
function wayOut(problem) {
  const { state, info } = page;
  const texts = state.texts.map((each) => each.text.trim());
  if (!texts[0] || !texts[state.shown]) {
    const { text, second } = exampleOf(info.sources.find((each) => each.name === state.source));
    return ["Use the example", () => page.setTexts([texts[0] || text, texts[1] || (second ?? "")])];
  }
  if (problem.startsWith("this takes more than")) {
    const dropSamples = () => {
      state.samples = 0;
      refresh();
    };
    return state.samples ? ["Drop the samples", dropSamples] : null;
  }
  const counts = problem.match(/^received (\d+)(?: and (\d+))? words/)?.slice(1).filter(Boolean);
  if (counts) {
    // the server may find more words than there are between spaces, so each text keeps its share
    const all = counts.reduce((sum, count) => sum + Number(count), 0);
    const kept = texts.slice(0, counts.length).map((text) => {
      const words = text.split(/\s+/);
      return words.slice(0, Math.floor((words.length * info.most_words) / all));
    });
    const lengths = kept.map((words) => words.length).join(" and ");
    return [`Keep the first ${lengths} words`, () => page.setTexts(kept.map((words) => words.join(" ")))];
  }
  if (state.texts.some(changesOf)) return ["Reset all changes", resetAll];
  return state.source === "random" ? null : ["Use random scores", () => page.setSource("random")];
}

function resetAll() {
  page.state.texts.forEach(freeAll);
  refresh();
}

// ------------------------------------------------------------------ the link

let writing = null;

// Browsers allow only so many changes of the address in a while.
export function writeLink() {
  clearTimeout(writing);
  writing = setTimeout(() => history.replaceState(null, "", toHash(page.state)), 250);
}

export async function copyLink() {
  clearTimeout(writing);
  history.replaceState(null, "", toHash(page.state));
  try {
    await navigator.clipboard.writeText(location.href);
    byId("link-said").textContent = "Link copied.";
  } catch {
    byId("link-said").textContent = "The link is in the address bar.";
  }
  setTimeout(() => (byId("link-said").textContent = ""), 4000);
}
