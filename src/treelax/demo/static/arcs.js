// Trees as arcs over the words.

import { key } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";
const LEAST_WEIGHT = 0.01; // lighter arcs cannot be seen
const TOUCHABLE = 0.05; // heavier arcs can be clicked
const MOST_ARCS = 600; // more could not be told apart, and would take long
const LONGEST_WORD = 20; // characters
const LEAST_GAP = 7;
const MOST_GAP = 64;
const LOWEST = 18;
const TALLEST = 150;
const measure = document.createElement("canvas").getContext("2d");

export function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// arcs: {head, word, weight, below}; names and numbers: of the root and all words; room: to spread
// the words over, if they need less; tags: a text below every word, or null; returns how many arcs of
// those heavy enough are left out
export function drawArcs(svg, names, numbers, arcs, pinned, room, tags = null) {
  const labels = names.map(shortened);
  const count = labels.length - 1;
  const centres = places(labels, tags, room);
  const heavy = arcs.filter((arc) => arc.weight >= LEAST_WEIGHT).sort((a, b) => a.weight - b.weight);
  const drawn = heavy.slice(-MOST_ARCS);
  const spans = (below) =>
    Math.max(0, ...drawn.filter((arc) => arc.below === below).map(span));
  const above = spans(false) ? height(spans(false), count) : 0;
  const under = spans(true) ? height(spans(true), count) : 0;
  const base = above + 12;
  const text = base + 16;
  const foot = text + (tags ? 27 : 15);
  const width = Math.ceil(centres.at(-1) + half(labels.at(-1), tags?.at(-1)) + 8);
  const whole = Math.ceil(foot + under + 6);
  svg.setAttribute("width", width);
  svg.setAttribute("height", whole);
  svg.setAttribute("viewBox", `0 0 ${width} ${whole}`);
  const parts = [];
  const touched = [];
  // light arcs first, so that heavy ones lie on them
  for (const arc of drawn) {
    const { line, tip } = shape(arc, centres, count, arc.below ? foot : base);
    const kind = `${arc.below ? " below" : ""}${pinned.has(key(arc.head, arc.word)) ? " pinned" : ""}`;
    const about = { "data-head": arc.head, "data-word": arc.word };
    parts.push(
      element("path", { class: `arc-line${kind}`, d: line, opacity: arc.weight, ...about }),
      element("path", { class: `tip${kind}`, d: tip, opacity: arc.weight }),
    );
    if (arc.weight >= TOUCHABLE) touched.push(element("path", { class: "arc-hit", d: line, ...about }));
  }
  labels.forEach((label, at) => {
    const x = centres[at];
    const kind = numbers[at] === "" ? { class: "null" } : {}; // no word of the text
    parts.push(element("text", { x, y: text, "text-anchor": "middle", ...kind }, label));
    const number = { x, y: text + 12, "text-anchor": "middle", class: "number" };
    parts.push(element("text", number, numbers[at]));
    const tag = at && tags ? tags[at - 1] : "";
    if (tag) {
      parts.push(element("text", { x, y: text + 24, "text-anchor": "middle", class: "tag" }, tag));
    }
  });
  svg.replaceChildren(...parts, ...touched);
  return heavy.length - drawn.length;
}

export const fromHeads = (heads, below = false) =>
  heads.map((head, at) => ({ head, word: at + 1, weight: 1, below }));

export function fromMatrix(matrix) {
  const arcs = [];
  matrix.forEach((row, head) =>
    row.forEach((weight, word) => {
      if (weight > 0) arcs.push({ head, word, weight, below: false });
    }),
  );
  return arcs;
}

const span = (arc) => Math.abs(arc.head - arc.word);

// Long arcs are higher, but not in proportion, or short ones could not be told apart.
const height = (distance, count) =>
  LOWEST + TALLEST * Math.min(1, count / 14) * ((distance - 1) / Math.max(count, 4)) ** 0.75 + 6;

function half(label, tag) {
  measure.font = "14px system-ui, sans-serif";
  const width = measure.measureText(label).width;
  measure.font = "11px system-ui, sans-serif";
  return Math.max(width, tag ? measure.measureText(tag).width : 0, 12) / 2;
}

function places(labels, tags, room) {
  const halves = labels.map((label, at) => half(label, at && tags ? tags[at - 1] : ""));
  const needed = 16 + halves.reduce((sum, width) => sum + 2 * width, 0);
  const gap = Math.max(LEAST_GAP, Math.min(MOST_GAP, (room - needed) / (labels.length - 1) - 0.5));
  let x = halves[0] + 8;
  return halves.map((width, at) => {
    if (at) x += halves[at - 1] + width + gap;
    return x;
  });
}

function shape(arc, centres, count, y) {
  const way = Math.sign(arc.word - arc.head);
  const up = arc.below ? 1 : -1;
  // an arc leaves its head a little beside the middle, where the arrow into the head ends
  const from = centres[arc.head] + 5 * way;
  const to = centres[arc.word];
  // a cubic curve comes to three quarters of its control points
  const top = y + (up * (height(span(arc), count) - 6) * 4) / 3;
  const end = y + up * 5;
  return {
    line: `M${from} ${y}C${from} ${top} ${to} ${top} ${to} ${end}`,
    tip: `M${to} ${y}L${to - 3.5} ${y + up * 7}L${to + 3.5} ${y + up * 7}Z`,
  };
}

function shortened(text) {
  const letters = [...text];
  return letters.length <= LONGEST_WORD ? text : `${letters.slice(0, LONGEST_WORD - 1).join("")}…`;
}
