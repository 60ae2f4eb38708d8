// One arc: chosen, pinned, forbidden, given a score, by form, by click or by keyboard.

import { light } from "./light.js";
import { byId, page, refresh, shownText } from "./page.js";
import { hasArcs } from "./state.js";
import { forbid, free, freeAll, isPart, key, pin, place, remember } from "./texts.js";

const exists = (head, word) => isPart(head, word, hasArcs(page.state));

// The loss is about the chosen arc, so there is a new gradient to ask for.
function choose(head, word) {
  remember(Object.assign(shownText(), { head, word, open: false, own: true }));
  page.pictures.moveCursor(head, word);
  showArc();
  refresh();
}

function showArc() {
  const count = page.pictures.reply?.words.length ?? 0;
  if (!count) return;
  const text = shownText();
  text.word = Math.min(text.word, count);
  text.head = Math.min(text.head, count);
  if (!exists(text.head, text.word)) {
    text.head = Math.max(text.word - 1, hasArcs(page.state) ? 0 : 1);
    if (!exists(text.head, text.word)) text.word = Math.min(text.head + 1, count);
  }
  const { head, word } = text;
  const arcs = hasArcs(page.state);
  page.pictures.moveCursor(head, word);
  fillPositions(byId("arc-head"), arcs ? 0 : 1, count, head);
  fillPositions(byId("arc-word"), 1, count, word);
  for (const option of byId("arc-head").options) option.disabled = !exists(Number(option.value), word);
  for (const [id, name] of [["head", arcs ? "Head" : "First word"], ["word", arcs ? "Word" : "Last word"]]) {
    byId(`arc-${id}-label`).textContent = name;
  }
  const field = byId("arc-score");
  const score = page.pictures.reply.scores[head][word];
  if (document.activeElement !== field) field.value = score === null ? "" : Number(score.toFixed(4));
  field.placeholder = score === null ? "forbidden" : "";
  byId("pin").setAttribute("aria-pressed", text.pinned.has(key(head, word)));
  byId("forbid").setAttribute("aria-pressed", text.forbidden.has(key(head, word)));
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

function showChanges() {
  const text = shownText();
  const kinds = [
    ...[...text.pinned].map((arc) => [arc, "pinned"]),
    ...[...text.forbidden].map((arc) => [arc, "forbidden"]),
    ...[...text.edits].map(([arc, score]) => [arc, `score ${score}`]),
  ];
  const count = page.pictures.reply?.words.length ?? 0;
  const unused = kinds.filter(([arc]) => Math.max(...Object.values(place(arc))) > count).length;
  const chips = kinds.slice(0, 40).map(([arc, what]) => {
    const { head, word } = place(arc);
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${page.pictures.name(head, word)} ${what}`;
    button.addEventListener("click", () => {
      free(text, arc);
      byId("heat-scores").focus();
      byHand();
    });
    item.append(button);
    return item;
  });
  byId("changes").replaceChildren(...chips);
  byId("changes-row").hidden = kinds.length === 0;
  if (kinds.length) byId("change").open = true;
  byId("free-all").textContent = unused ? `Reset all (${unused} beyond the last word)` : "Reset all";
}

// After every change by hand.
function byHand() {
  remember(shownText());
  refresh();
}

function toggle(kind, arc) {
  const text = shownText();
  if (text[kind].has(arc)) text[kind].delete(arc);
  else if (kind === "pinned") pin(text, arc, hasArcs(page.state));
  else forbid(text, arc);
  byHand();
}

function reset(arc) {
  free(shownText(), arc);
  byHand();
}

export function clicked(head, word) {
  choose(head, word);
  if (page.state.click === "pin") toggle("pinned", key(head, word));
  if (page.state.click === "forbid") toggle("forbidden", key(head, word));
}

function setScore(score) {
  const { edits, forbidden } = shownText();
  if (Number.isFinite(score)) {
    forbidden.delete(chosen());
    edits.set(chosen(), Math.max(-1e6, Math.min(1e6, score)));
  } else {
    edits.delete(chosen());
  }
  byHand();
}

function moved(event) {
  const count = page.pictures.reply?.words.length ?? 0;
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const step = steps[event.key];
  if (!step || !count) return false;
  let { head, word } = shownText();
  const inside = () => head >= 0 && head <= count && word >= 1 && word <= count;
  do {
    head += step[0];
    word += step[1];
  } while (inside() && !exists(head, word));
  if (inside()) {
    choose(head, word);
    light({ head, word });
  }
  return true;
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { head, word, edits } = shownText();
  const arc = key(head, word);
  // that of the picture may be behind
  const score = edits.get(arc) ?? page.pictures.reply?.scores[head]?.[word] ?? 0;
  const acts = {
    p: () => toggle("pinned", arc),
    f: () => toggle("forbidden", arc),
    delete: () => reset(arc),
    backspace: () => reset(arc),
    "+": () => setScore(Number((score + 0.5).toFixed(4))),
    "=": () => setScore(Number((score + 0.5).toFixed(4))),
    "-": () => setScore(Number((score - 0.5).toFixed(4))),
    enter: () => byId("arc-score").focus(),
  };
  const act = acts[event.key.toLowerCase()];
  if (act) act();
  if (act || moved(event)) event.preventDefault();
}

const chosen = () => key(shownText().head, shownText().word);

export function connectArcs() {
  for (const list of [page.whenDrawn, page.whenFailed]) list.push(showArc, showChanges);
  byId("arc").addEventListener("submit", (event) => event.preventDefault());
  for (const part of ["head", "word"]) {
    byId(`arc-${part}`).addEventListener("change", () => {
      const { head, word } = { ...shownText(), [part]: Number(byId(`arc-${part}`).value) };
      choose(head, word);
    });
  }
  byId("arc-score").addEventListener("input", () => setScore(byId("arc-score").valueAsNumber));
  byId("arc-score").addEventListener("change", () => {
    const score = shownText().edits.get(chosen()); // the one in use, if another was typed
    if (score !== undefined) byId("arc-score").value = score;
  });
  byId("pin").addEventListener("click", () => toggle("pinned", chosen()));
  byId("forbid").addEventListener("click", () => toggle("forbidden", chosen()));
  byId("free").addEventListener("click", () => reset(chosen()));
  byId("free-all").addEventListener("click", () => {
    freeAll(shownText());
    byId("heat-scores").focus();
    refresh();
  });
  // in the column beside the pictures most of it would open below the edge of the window
  byId("change").firstElementChild.addEventListener("click", () =>
    requestAnimationFrame(() => byId("change").scrollIntoView({ block: "nearest" })),
  );
  const host = byId("heat-scores");
  host.addEventListener("keydown", pressed);
  host.addEventListener("focus", () => host.matches(":focus-visible") && light(place(chosen())));
  host.addEventListener("blur", () => light(null));
}
