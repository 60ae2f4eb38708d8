// The sentence, the noise and the relaxation.

import { byId, changedArcs, copyLink, page, randomSeed, refresh, writeLink } from "./page.js";
import { MOST_SEED, ofSource } from "./state.js";
import { changesOf, newText } from "./texts.js";

const MOST_NOISE = 100; // the slider's cube, for scores of a model may be 100 times those of another
const radios = (name) => [...document.querySelectorAll(`input[name="${name}"]`)];

export function showControls() {
  byId("source").value = page.state.source;
  const [first, second] = page.state.texts;
  byId("text").value = first.text;
  byId("second").value = second.text;
  showPair();
  byId("new-scores").hidden = page.state.source !== "random";
  byId("temperature").value = Math.log10(page.state.temperature);
  byId("noise").value = Math.cbrt(page.state.noiseScale / MOST_NOISE);
  showSeed();
  showSliders();
  byId("heads-facts").hidden = !page.state.heads;
  byId("marginals-facts").hidden = !page.state.marginals;
  byId("relaxations").hidden = page.state.heads || page.state.marginals;
  byId("roots").hidden = page.state.heads;
  for (const radio of radios("relaxation")) radio.checked = radio.value === page.state.relaxation;
  const roots = page.state.singleRoot ? "single" : "several";
  for (const radio of radios("roots")) radio.checked = radio.value === roots;
  for (const radio of radios("click")) radio.checked = radio.value === page.state.click;
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
  on("link", "click", copyLink);
  on("source", "change", () => {
    const before = sourceInfo();
    const [first, second] = page.state.texts.map((text) => text.text);
    page.state.source = byId("source").value;
    const now = sourceInfo();
    Object.assign(page.state, ofSource(now));
    startAnew(
      first.trim() === before.examples[0] ? now.examples[0] : first,
      [before.examples[1] ?? "", ""].includes(second.trim()) ? (now.examples[1] ?? "") : second,
    );
  });
  for (const [at, id] of ["text", "second"].entries()) {
    on(id, "input", () => {
      page.state.texts[at].text = byId(id).value;
      refresh();
    });
  }
  on("example", "click", () => startAnew(sourceInfo().examples[0], sourceInfo().examples[1] ?? ""));
  for (const radio of radios("shown")) {
    radio.addEventListener("change", () => {
      page.state.shown = radio.value === "second" ? 1 : 0;
      refresh();
    });
  }
  on("new-scores", "click", () => {
    page.state.scoreSeed = randomSeed();
    refresh();
  });
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
  on("resample", "click", () => {
    page.state.noiseSeed = randomSeed();
    showControls();
    refresh();
  });
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
  for (const radio of radios("relaxation")) {
    radio.addEventListener("change", () => {
      page.state.relaxation = radio.value;
      refresh();
    });
  }
  for (const radio of radios("roots")) {
    radio.addEventListener("change", () => {
      page.state.singleRoot = radio.value === "single";
      refresh();
    });
  }
  for (const radio of radios("click")) {
    radio.addEventListener("change", () => {
      page.state.click = radio.value;
      writeLink();
    });
  }
}

// Other texts: what was changed by hand in the arcs of the last ones is no more.
function startAnew(...texts) {
  const count = page.state.texts.reduce((sum, text) => sum + changesOf(text), 0);
  page.state.texts = texts.map(newText);
  if (count) page.notice = `${changedArcs(count)} cleared.`;
  showControls();
  refresh();
}

const sourceInfo = () => page.info.sources.find((each) => each.name === page.state.source);
