// What the pointer or the focus is on lights up in all pictures: an arc, or a word with its heads.

import { byId, page } from "./page.js";
import { key } from "./texts.js";

const MOST_HEADS = 5;
const TREES = ["soft-arcs", "best-arcs", "sample-arcs"];
let lit = null; // {head, word}, or {word} alone

// focus: null for nothing; at: where the note goes, none for what the pointer is not on
export function light(focus, at = null) {
  const { pictures } = page;
  if (!pictures.reply) return;
  lit = focus;
  for (const id of TREES) {
    byId(id).classList.toggle("dim", focus !== null);
    for (const group of byId(id).querySelectorAll(".lit")) group.classList.remove("lit");
    if (focus === null) continue;
    for (const group of byId(id).children) {
      const [head, word] = [Number(group.dataset.head), Number(group.dataset.word)];
      const isWord = group.classList.contains("word");
      const hit = isWord ? word === focus.word || word === focus.head : pictures.concerns(focus, head, word);
      group.classList.toggle("lit", hit);
    }
  }
  for (const map of Object.values(pictures.maps)) map.showLight(focus);
  showNote(focus, at);
}

// After new pictures: the same arc, wherever it is now.
export const lightAgain = () => lit && light(lit, "same");

function showNote(focus, at) {
  const note = byId("note");
  note.hidden = focus === null || at === null;
  if (note.hidden) return;
  note.replaceChildren(...(focus.head === undefined ? headsOf(focus.word) : [page.pictures.describe(focus.head, focus.word)]));
  if (at === "same") return;
  const box = note.getBoundingClientRect();
  const above = at.y + 18 + box.height > window.innerHeight;
  note.style.left = `${Math.max(6, Math.min(at.x + 12, window.innerWidth - box.width - 6))}px`;
  note.style.top = `${above ? at.y - box.height - 10 : at.y + 18}px`;
}

// The distribution of a word over its heads, the heaviest first.
function headsOf(word) {
  const { pictures } = page;
  const { title, rows } = pictures.distribution(word, MOST_HEADS);
  const heading = document.createElement("strong");
  heading.textContent = title;
  const list = document.createElement("table");
  for (const { name, weight, score } of rows) {
    const row = list.insertRow();
    row.insertCell().textContent = name;
    const bar = document.createElement("span");
    bar.className = "bar";
    bar.style.width = `${Math.round(80 * weight)}px`;
    row.insertCell().append(bar);
    row.insertCell().textContent = weight.toFixed(2);
    row.insertCell().textContent = `score ${score}`;
  }
  return [heading, list];
}

// In words, for those who do not see the note.
function spoken(word) {
  const { title, rows } = page.pictures.distribution(word, MOST_HEADS);
  return `${title}: ${rows.map(({ name, weight }) => `${name} ${weight.toFixed(2)}`).join(", ")}`;
}

function stepped(svg, event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const count = page.pictures.reply?.words.length ?? 0;
  if (!step || !count) return;
  event.preventDefault(); // the picture would scroll
  const word = Math.max(1, Math.min(count, (lit?.word ?? (step > 0 ? 0 : count + 1)) + step));
  const group = svg.querySelector(`.word[data-word="${word}"]`);
  group.scrollIntoView({ block: "nearest", inline: "center" });
  const box = group.getBoundingClientRect();
  light({ word }, { x: box.left, y: box.bottom - 12 });
  byId("spoken").textContent = spoken(word);
}

// A finger that taps does not move.
function onPointer(element, act) {
  for (const kind of ["pointermove", "pointerdown"]) element.addEventListener(kind, act);
}

// clicked: what a click on an arc or a cell does
export function connectLight(clicked) {
  page.whenDrawn.push(lightAgain);
  page.whenFailed.push(() => light(null));
  const out = (event) => event.pointerType !== "touch" && light(null);
  for (const id of TREES) {
    const svg = byId(id);
    onPointer(svg, (event) => {
      const { head, word } = event.target.closest("g")?.dataset ?? {};
      const at = { x: event.clientX, y: event.clientY };
      if (word === undefined) light(null);
      else if (head === undefined) light({ word: Number(word) }, at);
      else light({ head: Number(head), word: Number(word) }, at);
    });
    svg.addEventListener("pointerleave", out);
    svg.addEventListener("click", (event) => {
      const { head, word } = event.target.closest("g")?.dataset ?? {};
      if (head !== undefined) clicked(Number(head), Number(word));
    });
    svg.parentElement.addEventListener("keydown", (event) => stepped(svg, event));
    svg.parentElement.addEventListener("blur", () => light(null));
  }
  for (const map of Object.values(page.pictures.maps)) {
    map.canvas.addEventListener("click", (event) => {
      const found = map.at(event);
      if (found) clicked(found.head, found.word);
    });
    onPointer(map.canvas, (event) => {
      const found = map.at(event);
      if (!found || !lit || key(found.head, found.word) !== key(lit.head, lit.word)) {
        light(found, { x: event.clientX, y: event.clientY });
      }
    });
    map.canvas.addEventListener("pointerleave", out);
  }
  document.addEventListener("pointerdown", (event) => {
    if (lit && !event.target.closest("svg, canvas")) light(null);
  });
  window.addEventListener("scroll", () => (byId("note").hidden = true), { passive: true });
}
