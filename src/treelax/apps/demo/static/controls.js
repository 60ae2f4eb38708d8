// The sentence, the noise, what trees are and what makes them soft.

import { examplesOf } from "./examples.js";
import { byId, copyLink, countedChanges, page, randomSeed, refresh, writeLink } from "./page.js";
import { MOST_SEED, hasArcs, inUnits, mayHaveRoots, ofSource, relaxationsOf, setStructure } from "./state.js";
import { changesOf, chooseAnew, newText, place } from "./texts.js";

const MOST_NOISE = 100; // the slider's cube, for scores of a model may be 100 times those of another
const radios = (name) => [...document.querySelectorAll(`input[name="${name}"]`)];
// What each estimator gives, in a sentence: [title, text].
const TREES = {
  relaxed: ["Soft tree", "Arcs get weights instead of yes or no, so that gradients can flow through the tree."],
  "straight-through": ["Tree, soft gradient", "The network sees the best tree with noise; the gradient is that of the soft tree."],
  marginals: ["Soft tree", "The probability of every arc at this temperature, without noise."],
  sparsemap: ["Sparse tree", "A mixture of a few trees, the nearest to the scores with noise: most arcs weigh exactly 0."],
  spigot: ["Tree, projected gradient", "The network sees the best tree with noise; the gradient is projected onto trees."],
  imle: ["Tree, difference as gradient", "The network sees the best tree with noise; the gradient is the difference to a tree that the loss prefers."],
};
const PARTS = [...document.querySelectorAll(".part")].map((part) => [part, part.textContent]);
const SCALES = {
  true: "above or below the mean of the column, on one scale: a constant in a column changes no tree",
  false: "above or below the mean of all spans, on one scale: a constant in all spans changes no tree",
};
// Why there is no choice of a relaxation.
const ONLY = {
  nonprojective: "Non-projective trees: entropy only.",
  heads: "Heads: softmax only.",
};
const SCORES = {
  true: "How good is each arc? Rows are heads, columns words.",
  false: "How good is each span? Rows are first words, columns last ones.",
};

export function showControls() {
  const { state } = page;
  byId("source").value = state.source;
  const [first, second] = state.texts;
  byId("text").value = first.text;
  byId("second").value = second.text;
  showPair();
  byId("new-scores").hidden = state.source !== "random";
  byId("temperature").value = Math.log10(state.temperature);
  byId("noise").value = Math.cbrt(state.noiseScale / MOST_NOISE);
  byId("relative").checked = state.relative;
  showSeed();
  showSliders();
  for (const option of byId("structure").options) {
    option.disabled = !sourceInfo().structures.includes(option.value);
  }
  const parts = hasArcs(state) ? "arcs, not spans" : "spans, not arcs";
  const all = [...byId("structure").options].every((option) => !option.disabled);
  byId("structure").title = all ? "" : `This model scores ${parts}.`;
  byId("structure").value = state.structure;
  byId("estimator").value = state.estimator;
  const relaxes = ["relaxed", "straight-through"].includes(state.estimator);
  const isPapers = state.structure === "projective" && state.relaxation === "softmax";
  byId("relaxed").textContent = isPapers ? "relaxed (the paper’s)" : "relaxed";
  byId("relaxation-note").textContent = relaxes ? (ONLY[state.structure] ?? "") : "This estimator has no relaxation.";
  const may = { relaxation: relaxes && relaxationsOf(state).length > 1, roots: mayHaveRoots(state) };
  const chosen = { relaxation: state.relaxation, roots: state.singleRoot ? "single" : "several" };
  for (const name of ["relaxation", "roots"]) {
    for (const radio of radios(name)) {
      radio.checked = radio.value === chosen[name];
      radio.disabled = !may[name];
    }
  }
  for (const radio of radios("click")) radio.checked = radio.value === state.click;
  [byId("soft-title").textContent, byId("soft-note").textContent] = TREES[state.estimator].map(named);
  byId("scores-note").textContent = SCORES[hasArcs(state)];
  byId("scale-note").textContent = SCALES[hasArcs(state)];
  for (const [part, text] of PARTS) part.textContent = named(text);
  const shown = examplesOf(page.info).findIndex((each) => each.text === first.text && each.source === state.source);
  [...byId("examples").children].forEach((button, at) => button.setAttribute("aria-pressed", at === shown));
  byId("about").textContent = examplesOf(page.info)[shown]?.about ?? "";
}

// Of binary trees the parts are spans.
function named(text) {
  if (hasArcs(page.state)) return text;
  return text.replace(/\ban arc/g, "a span").replace(/\barc/g, "span").replace(/\bArc/g, "Span");
}

// A second text, and which of both the pictures show, for models of pairs.
function showPair() {
  const { pair, shown } = page.state;
  byId("pair").hidden = !pair;
  byId("pair-shown").hidden = !pair;
  const [first, second] = sourceInfo().texts;
  byId("text-label").textContent = pair ? `First text (${first})` : "Sentence or expression";
  byId("second-label").textContent = `Second text (${second})`;
  for (const radio of radios("shown")) radio.checked = radio.value === (shown ? "second" : "first");
}

// The one in use, whatever was typed.
function showSeed() {
  byId("noise-seed").value = page.state.noiseSeed;
}

function showSliders() {
  const texts = { temperature: written(page.state.temperature), noise: written(page.state.noiseScale) };
  for (const [id, text] of Object.entries(texts)) {
    byId(`${id}-value`).textContent = text;
    byId(id).setAttribute("aria-valuetext", text);
  }
}

const written = (value) => (value >= 10 ? value.toFixed(1) : value.toPrecision(3));

export function connectControls() {
  const on = (id, event, act) => byId(id).addEventListener(event, act);
  const changes = (names, event, act) => {
    for (const radio of names) radio.addEventListener(event, () => act(radio.value));
  };
  Object.assign(page, { setSource, setTexts });
  page.whenDrawn.push(showSpread);
  byId("examples").replaceChildren(...examplesOf(page.info).map(exampleButton));
  on("link", "click", copyLink);
  on("source", "change", () => setSource(byId("source").value));
  for (const [at, id] of ["text", "second"].entries()) {
    on(id, "input", () => {
      const texts = page.state.texts.map((text) => text.text);
      setTexts(texts.with(at, byId(id).value));
    });
  }
  changes(radios("shown"), "change", (value) => set({ shown: value === "second" ? 1 : 0 }));
  on("new-scores", "click", () => set({ scoreSeed: randomSeed() }));
  on("temperature", "input", () => {
    page.state.temperature = Number((10 ** byId("temperature").valueAsNumber).toPrecision(3));
    showSliders();
    refresh();
  });
  on("noise", "input", () => {
    page.state.noiseScale = Number((MOST_NOISE * byId("noise").valueAsNumber ** 3).toPrecision(3));
    showSliders();
    refresh();
  });
  on("relative", "change", () => set(inUnits(sourceInfo(), byId("relative").checked)));
  on("resample", "click", () => set({ noiseSeed: randomSeed() }));
  on("noise-seed", "input", () => {
    const seed = byId("noise-seed").valueAsNumber;
    if (Number.isNaN(seed)) return; // not typed to its end
    if (seed >= 0 && seed <= MOST_SEED) {
      page.state.noiseSeed = Math.floor(seed);
      refresh();
    }
    if (seed !== page.state.noiseSeed) showSeed();
  });
  on("noise-seed", "change", showSeed);
  on("structure", "change", () => {
    const before = hasArcs(page.state);
    setStructure(page.state, byId("structure").value);
    // arcs and spans have nothing to do with each other
    if (hasArcs(page.state) !== before) startAnew(page.state.texts.map((text) => text.text));
    else {
      page.state.texts.forEach(chooseAnew);
      set({});
    }
  });
  on("estimator", "change", () => {
    page.state.texts.forEach(chooseAnew); // what has a gradient from one may have none from another
    set({ estimator: byId("estimator").value });
  });
  changes(radios("relaxation"), "change", (value) => set({ relaxation: value }));
  changes(radios("roots"), "change", (value) => set({ singleRoot: value === "single" }));
  changes(radios("click"), "change", (value) => {
    page.state.click = value;
    writeLink();
  });
}

function set(values) {
  Object.assign(page.state, values);
  showControls();
  refresh();
}

// Other words in the same texts, whose changes follow them.
function setTexts(texts) {
  texts.forEach((text, at) => {
    const own = page.state.texts[at];
    if (text === own.text) return;
    own.text = text;
    chooseAnew(own);
  });
  showControls();
  refresh();
}

// The same text with other scores, unless it was an example of the model before.
function setSource(name) {
  const before = sourceInfo();
  const [first, second] = page.state.texts.map((text) => text.text);
  const { structure } = page.state;
  page.state.source = name;
  const now = sourceInfo();
  Object.assign(page.state, ofSource(now));
  if (structure === "binary" && now.structures.includes(structure)) setStructure(page.state, structure);
  const isExample = examplesOf(page.info).some((each) => each.source === before.name && each.text === first.trim());
  const fits = now.name === "zero" || now.name === "random";
  const example = examplesOf(page.info).find((each) => each.source === name) ?? { text: now.examples[0] };
  startAnew([
    isExample && !fits ? example.text : first,
    [before.examples[1] ?? "", ""].includes(second.trim()) ? (now.examples[1] ?? "") : second,
  ]);
}

function exampleButton(example) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = example.name;
  button.addEventListener("click", () => {
    const source = page.info.sources.find((each) => each.name === example.source);
    Object.assign(page.state, ofSource(source), { scoreSeed: 0 });
    if (example.structure) setStructure(page.state, example.structure);
    startAnew([example.text, example.second ?? ""], example.arc && place(example.arc));
  });
  return button;
}

function showSpread() {
  byId("spread-value").textContent = page.pictures.reply.spread.toPrecision(3);
}

// Other texts: what was changed by hand in the arcs of the last ones is no more.
function startAnew(texts, chosen) {
  const count = page.state.texts.reduce((sum, text) => sum + changesOf(text), 0);
  page.state.texts = texts.map((text) => newText(text, chosen));
  if (count) page.notice = `${countedChanges(count)} cleared.`;
  showControls();
  refresh();
}

const sourceInfo = () => page.info.sources.find((each) => each.name === page.state.source);
