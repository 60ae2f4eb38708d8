// Trees as arcs, or as brackets of spans, over the words; by the rules of treelax.apps.pictures.style.

import { key } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";
const LEAST_WEIGHT = 0.05; // lighter arcs cannot be told apart
const MOST_ARCS = 600; // more could not be told apart, and would take long
const LONGEST_WORD = 20; // characters
const LEAST_GAP = 8;
const MOST_GAP = 90;
const LEAST_HEIGHT = 66; // of the arcs
const HEIGHT_PER_WORD = 15;
const MOST_HEIGHT = 230;
const LEG = 6; // how far a bracket reaches down
const measure = document.createElement("canvas").getContext("2d");
const widths = new Map(); // of texts, which take long to measure

export function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// parts: {head, word, weight, below}; names and numbers: of the root and all words; room: to spread the
// words over, if they need less; sizes: of treelax.apps.pictures.style; hasArcs: parts are arcs, not spans.
// Its size depends on the words alone, so that nothing jumps. Returns how many parts heavy enough are
// left out.
export function drawTree(svg, { names, numbers, parts, pinned, room, sizes, hasArcs, twoSides }) {
  const words = names.slice(1).map(shortened);
  const slots = words.map((word) => Math.max(widthOf(word, sizes.word), 14));
  const centres = places(slots, room);
  const heavy = parts.filter((part) => part.weight >= LEAST_WEIGHT).sort((a, b) => a.weight - b.weight);
  const drawn = heavy.slice(-MOST_ARCS);
  const share = twoSides ? 0.6 : 1;
  const high = share * Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, HEIGHT_PER_WORD * (words.length + 1)));
  const above = high + sizes.label + 4;
  const base = above + 2;
  const foot = base + 34;
  const width = Math.ceil(centres.at(-1) + slots.at(-1) / 2 + 10);
  const whole = Math.ceil(twoSides ? foot + above + 2 : foot);
  svg.setAttribute("width", width);
  svg.setAttribute("height", whole);
  svg.setAttribute("viewBox", `0 0 ${width} ${whole}`);
  const made = [];
  for (const below of twoSides ? [false, true] : [false]) {
    const side = { y: below ? foot : base, sign: below ? 1 : -1, high, sizes, slots, centres };
    const own = drawn.filter((part) => part.below === below);
    for (const { part, line, tip, label } of (hasArcs ? arches : brackets)(own, side)) {
      const { head, word, weight } = part;
      const kind = `${below ? " below" : ""}${pinned.has(key(head, word)) ? " pinned" : ""}`;
      const group = element("g", {
        class: `arc${kind}`,
        "data-head": head,
        "data-word": word,
        "data-weight": weight,
      });
      // not of the group: a browser would paint each one on a layer of its own
      const opacity = sizes.faintest + (1 - sizes.faintest) * weight;
      const thick = sizes.thinnest + (sizes.widest - sizes.thinnest) * weight;
      group.append(element("path", { class: "line", d: line, "stroke-width": thick, opacity }));
      if (tip) group.append(element("path", { class: "tip", d: tip, opacity }));
      if (label) group.append(element("text", { class: "root", ...label, opacity }, "root"));
      group.append(element("path", { class: "hit", d: line }));
      made.push(group);
    }
  }
  words.forEach((word, at) => {
    const [x, kind] = [centres[at], numbers[at + 1] === "" ? " null" : ""]; // no word of the text
    const group = element("g", { class: `word${kind}`, "data-word": at + 1 });
    group.append(
      element("rect", { x: x - slots[at] / 2 - 3, y: base + 1, width: slots[at] + 6, height: 32 }),
      element("text", { x, y: base + 17 }, word),
      element("text", { x, y: base + 29, class: "number" }, numbers[at + 1]),
    );
    made.push(group);
  });
  svg.replaceChildren(...made);
  return heavy.length - drawn.length;
}

export const fromParts = (parts, below = false) =>
  parts.map(([head, word]) => ({ head, word, weight: 1, below }));

export function fromMatrix(matrix) {
  const parts = [];
  matrix.forEach((row, head) =>
    row.forEach((weight, word) => {
      if (weight > 0) parts.push({ head, word, weight, below: false });
    }),
  );
  return parts;
}

// An arc rises from its head, beside the arrow into it, and is one level above all shorter ones that it
// runs over.
function arches(parts, { y, sign, high, sizes, slots, centres }) {
  const { arrow, lowest } = sizes;
  const withArrow = new Set(parts.map((part) => part.word));
  const inner = parts.filter((part) => part.head > 0).sort((a, b) => span(a) - span(b));
  const stem = ({ head, word }) => {
    const port = Math.min(sizes.port, Math.max(slots[head - 1] / 2, sizes.least_port));
    return centres[head - 1] + (withArrow.has(head) ? Math.sign(word - head) * port : 0);
  };
  const ends = new Map(inner.map((part) => [part, [stem(part), centres[part.word - 1]]]));
  const xs = [...new Set([...ends.values()].flat())].sort((a, b) => a - b);
  const rank = new Map(xs.map((x, at) => [x, at]));
  const levels = stacked(inner, (part) => ends.get(part).map((x) => rank.get(x)).sort((a, b) => a - b), xs.length);
  const step = Math.min(sizes.step, (high - arrow - lowest - sizes.above_all) / Math.max(1, ...levels.values()));
  const end = y + sign * arrow;
  return parts.map((part) => {
    const x = centres[part.word - 1];
    const tip = `M${x} ${y}l${-arrow / 2} ${sign * arrow}h${arrow}z`;
    if (part.head === 0) {
      const top = y + sign * high;
      const label = { x, y: sign < 0 ? top - 4 : top + sizes.label };
      return { part, tip, line: `M${x} ${top}V${end}`, label };
    }
    const [from] = ends.get(part);
    const top = end + sign * (lowest + levels.get(part) * step);
    return { part, tip, line: arch(from, x, y, top, end, sign, sizes.round) };
  });
}

// A bracket runs over its words, one level above all shorter ones that share a word with it.
function brackets(parts, { y, sign, high, sizes, slots, centres }) {
  const sorted = [...parts].sort((a, b) => span(a) - span(b));
  const levels = stacked(sorted, ({ head, word }) => [head - 1, word], centres.length);
  const step = Math.min(12, (high - LEG) / Math.max(1, ...levels.values()));
  return parts.map((part) => {
    const [left, right] = [centres[part.head - 1] - slots[part.head - 1] / 2, centres[part.word - 1] + slots[part.word - 1] / 2];
    const top = y + sign * (LEG + levels.get(part) * step);
    const foot = top - sign * LEG;
    return { part, line: arch(left, right, foot, top, foot, sign, 4) };
  });
}

// From the shortest part on, the first level that is free; reach: the gaps [from, to) that a part covers.
function stacked(parts, reach, gaps) {
  const skyline = new Array(gaps).fill(0);
  const levels = new Map();
  for (const part of parts) {
    const [from, to] = reach(part);
    const level = 1 + Math.max(...skyline.slice(from, Math.max(to, from + 1)));
    levels.set(part, level);
    skyline.fill(level, from, Math.max(to, from + 1));
  }
  return levels;
}

// Up, level and down again, with round corners.
function arch(from, to, start, top, end, sign, round) {
  const way = to > from ? 1 : -1;
  const radius = Math.max(0, Math.min(round, Math.abs(to - from) / 2, Math.abs(top - end)));
  const turn = `A${radius} ${radius} 0 0 ${way * sign < 0 ? 1 : 0}`;
  const down = top - sign * radius;
  return (
    `M${from} ${start}V${down}${turn} ${from + way * radius} ${top}` +
    `H${to - way * radius}${turn} ${to} ${down}V${end}`
  );
}

const span = (part) => 2 * Math.abs(part.head - part.word) + (part.head < part.word);

function widthOf(text, size) {
  if (!widths.has(text)) {
    measure.font = `${size}px system-ui, sans-serif`;
    widths.set(text, measure.measureText(text).width);
  }
  return widths.get(text);
}

function places(slots, room) {
  const needed = 20 + slots.reduce((sum, width) => sum + width, 0);
  const gap = Math.max(LEAST_GAP, Math.min(MOST_GAP, (room - needed) / Math.max(slots.length - 1, 1)));
  let x = slots[0] / 2 + 10;
  return slots.map((width, at) => {
    if (at) x += slots[at - 1] / 2 + width / 2 + gap;
    return x;
  });
}

function shortened(text) {
  const letters = [...text];
  return letters.length <= LONGEST_WORD ? text : `${letters.slice(0, LONGEST_WORD - 1).join("")}…`;
}
