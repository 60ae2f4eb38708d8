// The whole state of the page, and its two written forms: a link and a request.

import { key, newText, pin, place, remember } from "./texts.js";

export const MOST_SEED = 2147483647;
const MOST_SCORE = 1e6;
const MOST_CHARACTERS = 20000;

function initial(source) {
  return {
    ...ofSource(source),
    texts: [newText(source.examples[0]), newText(source.examples[1] ?? "")],
    noiseSeed: 0,
    scoreSeed: 0,
    sampleSeed: 0,
    samples: 0,
    click: "choose",
  };
}

// What a change of the source sets anew.
export function ofSource(source) {
  return {
    source: source.name,
    pair: source.texts.length === 2, // otherwise there is one text, the first
    heads: source.structure === "heads", // words choose alone, no tree binds them
    marginals: source.structure === "nonprojective", // the only soft trees that there are
    shown: 0, // which text the pictures show
    relaxation: source.defaults.relaxation,
    temperature: source.defaults.temperature,
    noiseScale: source.defaults.noise_scale,
    singleRoot: source.defaults.single_root,
  };
}

// plain: without what was changed by hand
export function toRequest(state, plain = false) {
  const [first, second] = state.texts.map((text) => (plain ? { text: text.text } : written(text)));
  const both = state.pair && (state.shown === 1 || second.text.trim() !== "");
  return {
    ...first,
    source: state.source,
    second: both ? second : null,
    shown: state.shown === 1 ? "second" : "first",
    score_seed: state.scoreSeed,
    noise_scale: state.noiseScale,
    noise_seed: state.noiseSeed,
    relaxation: state.relaxation,
    temperature: state.temperature,
    single_root: state.singleRoot,
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
    temperature: state.temperature,
    noise: state.noiseScale,
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
    arc: key(chosen.head, chosen.word),
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
  state.temperature = number("temperature", 0.01, 100, state.temperature);
  state.noiseScale = number("noise", 0, 100, state.noiseScale);
  state.noiseSeed = whole("seed", MOST_SEED, 0);
  const relaxations = state.marginals ? ["entropy"] : ["softmax", "entropy"];
  state.relaxation = one("relaxation", relaxations, state.relaxation);
  const roots = one("roots", ["single", "several"], state.singleRoot ? "single" : "");
  state.singleRoot = roots === "single" && !state.heads;
  state.scoreSeed = whole("scores", MOST_SEED, 0);
  state.sampleSeed = whole("drawn", MOST_SEED, 0);
  state.samples = whole("samples", info.most_samples, 0);
  state.click = one("click", ["choose", "pin", "forbid"], "choose");
  state.texts[0] = textOf(link, link.get("text") ?? source.examples[0], "", info);
  if (state.pair) {
    state.texts[1] = textOf(link, link.get("second") ?? source.examples[1], "2", info);
    state.shown = link.get("shown") === "second" ? 1 : 0;
  }
  const chosen = link.get("arc") ?? "";
  if (isArc(chosen, info)) remember(Object.assign(state.texts[state.shown], place(chosen)));
  return state;
}

function textOf(link, given, number, info) {
  const text = newText(given.slice(0, MOST_CHARACTERS));
  const arcs = (what) => (link.get(what + number) ?? "").split(",").filter(Boolean);
  for (const edit of arcs("edits")) {
    const [arc, score] = edit.split(":");
    const value = Number.parseFloat(score);
    if (isArc(arc, info) && Math.abs(value) <= MOST_SCORE) text.edits.set(arc, value);
  }
  for (const arc of arcs("forbidden")) if (isArc(arc, info)) text.forbidden.add(arc);
  for (const arc of arcs("pinned")) if (isArc(arc, info)) pin(text, arc);
  return remember(text);
}

function isArc(text, info) {
  if (!/^\d{1,3}-\d{1,3}$/.test(text)) return false;
  const { head, word } = place(text);
  return word > 0 && head !== word && Math.max(head, word) <= info.most_words + 1;
}
