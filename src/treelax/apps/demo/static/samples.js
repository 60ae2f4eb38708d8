// Exact samples, one after the other.

import { byId, page, randomSeed, refresh } from "./page.js";

const DRAWN_EVERY = 400; // milliseconds between samples
let playing = null;

function draw(count) {
  page.state.samples = Math.min(page.state.samples + count, page.info.most_samples);
  if (page.state.samples === page.info.most_samples) stop();
  refresh();
}

export function stop() {
  clearInterval(playing);
  showPlaying(null);
}

function showPlaying(timer) {
  playing = timer;
  byId("play").setAttribute("aria-pressed", String(timer !== null));
  // a screen reader would not come to anything else
  byId("sample-facts").setAttribute("aria-live", timer === null ? "polite" : "off");
}

export function connectSamples() {
  page.whenFailed.push(stop);
  for (const count of [1, 10, 100]) byId(`draw-${count}`).addEventListener("click", () => draw(count));
  byId("play").addEventListener("click", () => {
    if (playing !== null) return stop();
    showPlaying(setInterval(() => draw(1), DRAWN_EVERY));
    return draw(1);
  });
  byId("start-over").addEventListener("click", () => {
    stop();
    page.state.samples = 0;
    page.state.sampleSeed = randomSeed();
    refresh();
  });
}
