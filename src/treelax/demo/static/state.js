// The whole state of the page, and its two written forms: a link and a request.

export const MOST_SEED = 2147483647;
const MOST_SCORE = 1e6;

export function initial(source) {
  return {
    source: source.name,
    text: source.example,
    ...settings(source.defaults),
    noiseSeed: 0,
    scoreSeed: 0,
    sampleSeed: 0,
    samples: 0,
    edits: new Map(), // "head-word" to a score
    pinned: new Set(), // "head-word"
    forbidden: new Set(),
    click: "choose",
    head: 0,
    word: 1,
  };
}

export function settings(defaults) {
  return {
    relaxation: defaults.relaxation,
    temperature: defaults.temperature,
    noiseScale: defaults.noise_scale,
    singleRoot: defaults.single_root,
  };
}

export const key = (head, word) => `${head}-${word}`;

export function place(text) {
  const [head, word] = text.split("-").map(Number);
  return { head, word };
}

export function toRequest(state) {
  return {
    source: state.source,
    text: state.text,
    score_seed: state.scoreSeed,
    edits: [...state.edits].map(([arc, score]) => ({ ...place(arc), score })),
    pinned: [...state.pinned].map(place),
    forbidden: [...state.forbidden].map(place),
    noise_scale: state.noiseScale,
    noise_seed: state.noiseSeed,
    relaxation: state.relaxation,
    temperature: state.temperature,
    single_root: state.singleRoot,
    samples: state.samples,
    sample_seed: state.sampleSeed,
  };
}

export function toHash(state) {
  const link = new URLSearchParams({
    source: state.source,
    text: state.text,
    temperature: state.temperature,
    noise: state.noiseScale,
    seed: state.noiseSeed,
    relaxation: state.relaxation,
    roots: state.singleRoot ? "single" : "several",
  });
  const more = {
    scores: state.scoreSeed || "",
    samples: state.samples || "",
    drawn: state.sampleSeed || "",
    edits: [...state.edits].map(([arc, score]) => `${arc}:${score}`).join(","),
    pinned: [...state.pinned].join(","),
    forbidden: [...state.forbidden].join(","),
    click: state.click === "choose" ? "" : state.click,
    arc: key(state.head, state.word),
  };
  for (const [name, value] of Object.entries(more)) if (value !== "") link.set(name, value);
  return `#${link}`;
}

// A link may come from anywhere: what is not understood is left as it was.
export function fromHash(hash, base, info) {
  const link = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...base, edits: new Map(), pinned: new Set(), forbidden: new Set() };
  if ([...link].length === 0) return state;
  const one = (name, choices, otherwise) =>
    choices.includes(link.get(name)) ? link.get(name) : otherwise;
  const number = (name, least, most, otherwise) => {
    const value = Number.parseFloat(link.get(name));
    return value >= least && value <= most ? value : otherwise;
  };
  const whole = (name, most, otherwise) => Math.floor(number(name, 0, most, otherwise));
  const source = one("source", info.sources.map((each) => each.name), base.source);
  const known = info.sources.find((each) => each.name === source);
  Object.assign(state, settings(known.defaults), { source });
  state.text = (link.get("text") ?? known.example).slice(0, 20000);
  state.temperature = number("temperature", 0.01, 100, state.temperature);
  state.noiseScale = number("noise", 0, 100, state.noiseScale);
  state.noiseSeed = whole("seed", MOST_SEED, 0);
  state.relaxation = one("relaxation", ["softmax", "entropy"], state.relaxation);
  state.singleRoot = one("roots", ["single", "several"], state.singleRoot ? "single" : "") === "single";
  state.scoreSeed = whole("scores", MOST_SEED, 0);
  state.sampleSeed = whole("drawn", MOST_SEED, 0);
  state.samples = whole("samples", info.most_samples, 0);
  state.click = one("click", ["choose", "pin", "forbid"], "choose");
  const arcs = (name) => (link.get(name) ?? "").split(",").filter(Boolean);
  for (const written of arcs("edits")) {
    const [arc, score] = written.split(":");
    const value = Number.parseFloat(score);
    if (isArc(arc, info) && Math.abs(value) <= MOST_SCORE) state.edits.set(arc, value);
  }
  for (const arc of arcs("forbidden")) if (isArc(arc, info)) state.forbidden.add(arc);
  for (const arc of arcs("pinned")) if (isArc(arc, info)) pin(state, arc);
  const chosen = link.get("arc") ?? "";
  if (isArc(chosen, info)) Object.assign(state, place(chosen));
  return state;
}

function isArc(text, info) {
  if (!/^\d{1,3}-\d{1,3}$/.test(text)) return false;
  const { head, word } = place(text);
  return word > 0 && head !== word && Math.max(head, word) <= info.most_words + 1;
}

// A word has one pinned head, and no arc is pinned and forbidden at once.
export function pin(state, arc) {
  const { word } = place(arc);
  for (const other of [...state.pinned]) if (place(other).word === word) state.pinned.delete(other);
  state.forbidden.delete(arc);
  state.pinned.add(arc);
}

export function forbid(state, arc) {
  state.pinned.delete(arc);
  state.forbidden.add(arc);
}

export function free(state, arc) {
  state.pinned.delete(arc);
  state.forbidden.delete(arc);
  state.edits.delete(arc);
}
