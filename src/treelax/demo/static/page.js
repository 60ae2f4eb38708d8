// What all parts of the page share: its state, its pictures, and how it asks the server for trees.

import { toHash, toRequest } from "./state.js";

export const GONE = "The server does not answer. Is treelax demo still running?";
export const byId = (id) => document.getElementById(id);
export const randomSeed = () => Math.floor(Math.random() * 1e6);

export const page = {
  info: null, // what the server has
  state: null,
  pictures: null,
  whenDrawn: [], // called with every reply
  whenFailed: [],
};

// ------------------------------------------------------------------ asking the server

let asking = false;
let changed = false;
let begun = 0; // when the change was made that the next picture shows

// Ask for new trees; while an answer is on its way, only the newest state waits.
export function refresh() {
  if (!changed) begun = performance.now();
  changed = true;
  writeLink();
  if (!asking) ask();
}

async function ask() {
  asking = true;
  try {
    while (changed) {
      changed = false;
      const start = begun;
      const { status, wait, reply } = await trees();
      if (status === 200) {
        show(reply, start);
      } else if (status === 503) {
        say(reply.detail);
        await new Promise((later) => setTimeout(later, 1000 * wait));
        changed = true;
      } else {
        fail(reply.detail);
      }
    }
  } finally {
    asking = false;
  }
}

async function trees() {
  try {
    const response = await fetch("/api/trees", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(toRequest(page.state)),
    });
    const wait = response.headers.get("retry-after") ?? 1;
    return { status: response.status, wait, reply: await response.json() };
  } catch {
    return { reply: { detail: GONE } };
  }
}

function show(reply, start) {
  byId("alert").hidden = true;
  say("");
  byId("pictures").classList.remove("stale", "empty");
  page.pictures.draw(reply, page.state);
  for (const act of page.whenDrawn) act(reply);
  requestAnimationFrame(() =>
    setTimeout(() => {
      const { duration } = performance.measure("picture", { start, end: performance.now() });
      const words = reply.words.length === 1 ? "1 word" : `${reply.words.length} words`;
      byId("timing").textContent = `${words}, drawn in ${duration.toFixed(0)} ms`;
    }),
  );
}

export function say(text) {
  byId("status").textContent = text;
}

export function fail(text) {
  for (const act of page.whenFailed) act();
  say("");
  byId("timing").textContent = "";
  byId("alert").textContent = text;
  byId("alert").hidden = false;
  byId("pictures").classList.add("stale");
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
    say("Link copied.");
  } catch {
    say("The link is in the address bar.");
  }
}
