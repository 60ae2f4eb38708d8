// One arc: chosen, pinned, forbidden, given a score, by form, by click or by keyboard.

import { byId, page, refresh, writeLink } from "./page.js";
import { forbid, free, key, pin, place } from "./state.js";

function choose(head, word) {
  Object.assign(page.state, { head, word });
  page.pictures.moveCursor(head, word);
  showArc();
  writeLink();
}

function showArc() {
  const count = page.pictures.reply?.words.length ?? 0;
  if (!count) return;
  page.state.word = Math.min(page.state.word, count);
  page.state.head = Math.min(page.state.head, count);
  if (page.state.head === page.state.word) page.state.head = page.state.word - 1;
  const { head, word } = page.state;
  page.pictures.moveCursor(head, word);
  fillPositions(byId("arc-head"), 0, count, head);
  fillPositions(byId("arc-word"), 1, count, word);
  for (const option of byId("arc-head").options) option.disabled = Number(option.value) === word;
  const field = byId("arc-score");
  const score = page.pictures.reply.scores[head][word];
  if (document.activeElement !== field) field.value = score === null ? "" : Number(score.toFixed(4));
  field.placeholder = score === null ? "forbidden" : "";
  byId("pin").setAttribute("aria-pressed", page.state.pinned.has(key(head, word)));
  byId("forbid").setAttribute("aria-pressed", page.state.forbidden.has(key(head, word)));
  byId("readout").textContent = page.pictures.describe(head, word);
}

function fillPositions(list, first, last, chosen) {
  const texts = [];
  for (let at = first; at <= last; at++) texts.push(page.pictures.label(at));
  const shown = [...list.options].map((option) => option.textContent);
  if (texts.length !== shown.length || texts.some((text, at) => text !== shown[at])) {
    list.replaceChildren(...texts.map((text, at) => new Option(text, at + first)));
  }
  list.value = chosen;
}

function showChanges(unused) {
  const kinds = [
    ...[...page.state.pinned].map((arc) => [arc, "pinned"]),
    ...[...page.state.forbidden].map((arc) => [arc, "forbidden"]),
    ...[...page.state.edits].map(([arc, score]) => [arc, `score ${score}`]),
  ];
  const chips = kinds.slice(0, 40).map(([arc, what]) => {
    const { head, word } = place(arc);
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${page.pictures.name(head, word)} ${what}`;
    button.addEventListener("click", () => {
      free(page.state, arc);
      byId("heat-scores").focus();
      refresh();
    });
    item.append(button);
    return item;
  });
  byId("changes").replaceChildren(...chips);
  byId("changes-row").hidden = kinds.length === 0;
  byId("free-all").textContent = unused ? `Reset all (${unused} beyond the last word)` : "Reset all";
}

function toggle(set, act, arc) {
  if (set.has(arc)) set.delete(arc);
  else act(page.state, arc);
  refresh();
}

function clicked(head, word) {
  choose(head, word);
  if (page.state.click === "pin") toggle(page.state.pinned, pin, key(head, word));
  if (page.state.click === "forbid") toggle(page.state.forbidden, forbid, key(head, word));
}

function setScore(score) {
  const arc = chosen();
  if (Number.isFinite(score)) {
    page.state.forbidden.delete(arc);
    page.state.edits.set(arc, Math.max(-1e6, Math.min(1e6, score)));
  } else {
    page.state.edits.delete(arc);
  }
  refresh();
}

function moved(event) {
  const count = page.pictures.reply?.words.length ?? 0;
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const step = steps[event.key];
  if (!step || !count) return false;
  let [head, word] = [page.state.head, page.state.word];
  do {
    head += step[0];
    word += step[1];
  } while (head === word); // there is no such arc
  if (head >= 0 && head <= count && word >= 1 && word <= count) choose(head, word);
  return true;
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { head, word } = page.state;
  const arc = key(head, word);
  // that of the picture may be behind
  const score = page.state.edits.get(arc) ?? page.pictures.reply?.scores[head]?.[word] ?? 0;
  const acts = {
    p: () => toggle(page.state.pinned, pin, arc),
    f: () => toggle(page.state.forbidden, forbid, arc),
    delete: () => (free(page.state, arc), refresh()),
    backspace: () => (free(page.state, arc), refresh()),
    "+": () => setScore(Number((score + 0.5).toFixed(4))),
    "=": () => setScore(Number((score + 0.5).toFixed(4))),
    "-": () => setScore(Number((score - 0.5).toFixed(4))),
    enter: () => byId("arc-score").focus(),
  };
  const act = acts[event.key.toLowerCase()];
  if (act) act();
  if (act || moved(event)) event.preventDefault();
}

const chosen = () => key(page.state.head, page.state.word);

export function connectArcs() {
  page.whenDrawn.push(showArc, (reply) => showChanges(reply.unused));
  byId("arc").addEventListener("submit", (event) => event.preventDefault());
  for (const part of ["head", "word"]) {
    byId(`arc-${part}`).addEventListener("change", () => {
      const { head, word } = { ...page.state, [part]: Number(byId(`arc-${part}`).value) };
      choose(head, word);
    });
  }
  byId("arc-score").addEventListener("input", () => setScore(byId("arc-score").valueAsNumber));
  byId("pin").addEventListener("click", () => toggle(page.state.pinned, pin, chosen()));
  byId("forbid").addEventListener("click", () => toggle(page.state.forbidden, forbid, chosen()));
  byId("free").addEventListener("click", () => {
    free(page.state, chosen());
    refresh();
  });
  byId("free-all").addEventListener("click", () => {
    for (const arcs of [page.state.pinned, page.state.forbidden, page.state.edits]) arcs.clear();
    byId("heat-scores").focus();
    refresh();
  });
  byId("heat-scores").addEventListener("keydown", pressed);
  for (const map of Object.values(page.pictures.maps)) {
    map.canvas.addEventListener("click", (event) => {
      const found = map.at(event);
      if (found) clicked(found.head, found.word);
    });
    map.canvas.addEventListener("pointermove", (event) => {
      const found = map.at(event);
      if (found) byId("readout").textContent = page.pictures.describe(found.head, found.word);
    });
    map.canvas.addEventListener("pointerleave", () => {
      byId("readout").textContent = page.pictures.describe(page.state.head, page.state.word);
    });
  }
  for (const id of ["soft-arcs", "best-arcs", "sample-arcs"]) {
    byId(id).addEventListener("click", (event) => {
      const { head, word } = event.target.dataset;
      if (head !== undefined) clicked(Number(head), Number(word));
    });
  }
}
