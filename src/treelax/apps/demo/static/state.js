// The whole state of the page, and its two written forms: a link and a request.

import { exampleOf } from "./examples.js";
import { isPart, key, newText, pin, place, remember } from "./texts.js";

export const MOST_SEED = 2147483647;
const MOST_SCORE = 1e6;
const MOST_CHARACTERS = 20000;
const ESTIMATORS = ["relaxed", "straight-through", "marginals", "sparsemap", "spigot", "imle"];
// In spreads of the scores: enough to see other trees, not so much that all are alike.
const RELATIVE = { temperature: 0.2, noise_scale: 0.3 };

export const hasArcs = (state) => state.structure !== "binary"; // otherwise spans
export const mayHaveRoots = (state) => ["projective", "nonprojective"].includes(state.structure);
export const relaxationsOf = ({ structure }) =>
  ({ nonprojective: ["entropy"], heads: ["softmax"] })[structure] ?? ["softmax", "entropy"];

function initial(source) {
  const example = exampleOf(source);
  const state = {
    ...ofSource(source),
    texts: [newText(example.text, example.arc && place(example.arc)), newText(example.second ?? "")],
    estimator: "relaxed",
    noiseSeed: 0,
    scoreSeed: 0,
    sampleSeed: 0,
    samples: 0,
    click: "choose",
  };
  return state;
}

// What a change of the source sets anew.
export function ofSource(source) {
  return {
    source: source.name,
    pair: source.texts.length === 2, // otherwise there is one text, the first
    shown: 0, // which text the pictures show
    structure: source.structure,
    relaxation: source.defaults.relaxation,
    singleRoot: source.defaults.single_root,
    ...inUnits(source, true),
  };
}

// Noise and temperature as multiples of the spread of the scores, or as the model was trained.
export function inUnits(source, relative) {
  const { temperature, noise_scale } = relative ? RELATIVE : source.defaults;
  return { relative, temperature, noiseScale: noise_scale };
}

export function setStructure(state, structure) {
  state.structure = structure;
  if (!mayHaveRoots(state)) state.singleRoot = false;
  const relaxations = relaxationsOf(state);
  if (!relaxations.includes(state.relaxation)) [state.relaxation] = relaxations;
}

// plain: without what was changed by hand
export function toRequest(state, plain = false) {
  const [first, second] = state.texts.map((text) => (plain ? { text: text.text } : written(text)));
  const both = state.pair && (state.shown === 1 || second.text.trim() !== "");
  const { head, word, open } = state.texts[state.shown];
  return {
    ...first,
    source: state.source,
    second: both ? second : null,
    shown: state.shown === 1 ? "second" : "first",
    structure: state.structure,
    estimator: state.estimator,
    score_seed: state.scoreSeed,
    noise_scale: state.noiseScale,
    relative: state.relative,
    noise_seed: state.noiseSeed,
    relaxation: state.relaxation,
    temperature: state.temperature,
    single_root: state.singleRoot,
    target: open ? null : { head, word },
    samples: plain ? 0 : state.samples,
    sample_seed: state.sampleSeed,
  };
}

const written = ({ text, edits, pinned, forbidden }) => ({
  text,
  edits: [...edits].map(([arc, score]) => ({ ...place(arc), score })),
  pinned: [...pinned].map(place),
  forbidden: [...forbidden].map(place),
});

export function toHash(state) {
  const [first, second] = state.texts;
  const link = new URLSearchParams({
    source: state.source,
    text: first.text,
    structure: state.structure,
    estimator: state.estimator,
    temperature: state.temperature,
    noise: state.noiseScale,
    units: state.relative ? "spread" : "score",
    seed: state.noiseSeed,
    relaxation: state.relaxation,
    roots: state.singleRoot ? "single" : "several",
  });
  const chosen = state.texts[state.shown];
  const more = {
    ...linkOf(first, ""),
    ...(state.pair ? linkOf(second, "2") : {}),
    scores: state.scoreSeed || "",
    samples: state.samples || "",
    drawn: state.sampleSeed || "",
    click: state.click === "choose" ? "" : state.click,
    arc: chosen.open ? "" : key(chosen.head, chosen.word),
    shown: state.shown === 1 ? "second" : "",
  };
  if (state.pair) link.set("second", second.text);
  for (const [name, value] of Object.entries(more)) if (value !== "") link.set(name, value);
  return `#${link}`;
}

const linkOf = ({ edits, pinned, forbidden }, number) => ({
  [`edits${number}`]: [...edits].map(([arc, score]) => `${arc}:${score}`).join(","),
  [`pinned${number}`]: [...pinned].join(","),
  [`forbidden${number}`]: [...forbidden].join(","),
});

// A link may come from anywhere: what is not understood is left as the source has it.
export function fromHash(hash, info) {
  const link = new URLSearchParams(hash.replace(/^#/, ""));
  const one = (name, choices, otherwise) =>
    choices.includes(link.get(name)) ? link.get(name) : otherwise;
  const number = (name, least, most, otherwise) => {
    const value = Number.parseFloat(link.get(name));
    return value >= least && value <= most ? value : otherwise;
  };
  const whole = (name, most, otherwise) => Math.floor(number(name, 0, most, otherwise));
  const source = info.sources.find((each) => each.name === link.get("source")) ?? info.sources[0];
  const state = initial(source);
  Object.assign(state, inUnits(source, one("units", ["spread", "score"], "spread") === "spread"));
  state.temperature = number("temperature", 0.01, 100, state.temperature);
  state.noiseScale = number("noise", 0, 100, state.noiseScale);
  state.noiseSeed = whole("seed", MOST_SEED, 0);
  const roots = one("roots", ["single", "several"], state.singleRoot ? "single" : "");
  state.singleRoot = roots === "single";
  state.relaxation = one("relaxation", ["softmax", "entropy"], state.relaxation);
  setStructure(state, one("structure", source.structures, state.structure));
  state.estimator = one("estimator", ESTIMATORS, state.estimator);
  state.scoreSeed = whole("scores", MOST_SEED, 0);
  state.sampleSeed = whole("drawn", MOST_SEED, 0);
  state.samples = whole("samples", info.most_samples, 0);
  state.click = one("click", ["choose", "pin", "forbid"], "choose");
  const arcs = hasArcs(state);
  if (link.has("text")) state.texts[0] = textOf(link, link.get("text"), "", info, arcs);
  if (state.pair) {
    state.texts[1] = textOf(link, link.get("second") ?? source.examples[1], "2", info, arcs);
    state.shown = link.get("shown") === "second" ? 1 : 0;
  }
  const chosen = link.get("arc") ?? "";
  if (isOne(chosen, info, arcs)) {
    remember(Object.assign(state.texts[state.shown], place(chosen), { open: false }));
  }
  return state;
}

function textOf(link, given, number, info, arcs) {
  const text = newText(given.slice(0, MOST_CHARACTERS));
  const listed = (what) => (link.get(what + number) ?? "").split(",").filter(Boolean);
  for (const edit of listed("edits")) {
    const [arc, score] = edit.split(":");
    const value = Number.parseFloat(score);
    if (isOne(arc, info, arcs) && Math.abs(value) <= MOST_SCORE) text.edits.set(arc, value);
  }
  for (const arc of listed("forbidden")) if (isOne(arc, info, arcs)) text.forbidden.add(arc);
  for (const arc of listed("pinned")) if (isOne(arc, info, arcs)) pin(text, arc, arcs);
  return remember(text);
}

function isOne(text, info, arcs) {
  if (!/^\d{1,3}-\d{1,3}$/.test(text)) return false;
  const { head, word } = place(text);
  return isPart(head, word, arcs) && Math.max(head, word) <= info.most_words + 1;
}
