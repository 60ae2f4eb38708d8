// The sentence, the noise and the relaxation.

import { byId, copyLink, page, randomSeed, refresh, writeLink } from "./page.js";
import { MOST_SEED, settings } from "./state.js";

const MOST_NOISE = 100; // the slider's cube, for scores of a model may be 100 times those of another
const radios = (name) => [...document.querySelectorAll(`input[name="${name}"]`)];

export function showControls() {
  byId("source").value = page.state.source;
  byId("text").value = page.state.text;
  byId("new-scores").hidden = page.state.source !== "random";
  byId("temperature").value = Math.log10(page.state.temperature);
  byId("noise").value = Math.cbrt(page.state.noiseScale / MOST_NOISE);
  byId("noise-seed").value = page.state.noiseSeed;
  showSliders();
  for (const radio of radios("relaxation")) radio.checked = radio.value === page.state.relaxation;
  const roots = page.state.singleRoot ? "single" : "several";
  for (const radio of radios("roots")) radio.checked = radio.value === roots;
  for (const radio of radios("click")) radio.checked = radio.value === page.state.click;
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
    page.state.source = byId("source").value;
    if (page.state.text.trim() === before.example) page.state.text = sourceInfo().example;
    Object.assign(page.state, settings(sourceInfo().defaults));
    showControls();
    refresh();
  });
  on("text", "input", () => {
    page.state.text = byId("text").value;
    refresh();
  });
  on("example", "click", () => {
    page.state.text = sourceInfo().example;
    showControls();
    refresh();
  });
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
    if (!(seed >= 0 && seed <= MOST_SEED)) return;
    page.state.noiseSeed = Math.floor(seed);
    refresh();
  });
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

const sourceInfo = () => page.info.sources.find((each) => each.name === page.state.source);
