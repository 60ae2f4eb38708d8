// Five stops down the page; each says what is there and does something to see.

import { byId, page, refresh } from "./page.js";
import { showControls } from "./controls.js";

const HOTTER = 3;
let at = -1;
let temperature = null; // as it was before the tour

const STOPS = [
  {
    step: "step-1",
    text: "Every cell is an arc from a head (row) to a word (column). Orange is better than the other heads of that word, blue is worse. Point at a cell, or tap it: its arc lights up everywhere.",
  },
  {
    step: "step-2",
    text: "Noise makes the choice random. We have just drawn some: compare the sum with the scores. New noise draws again.",
    act: () => byId("resample").click(),
  },
  {
    step: "step-3",
    text: "Instead of one tree, a soft one: arcs share weight, so gradients can flow. We have raised the temperature, and more arcs share.",
    act: () => {
      temperature = page.state.temperature;
      setTemperature(Math.min(100, HOTTER * temperature));
    },
  },
  {
    step: "step-4",
    text: "At temperature 0 one tree is left, the best one. Above the words without noise, below with it. The temperature is back where it was.",
    act: () => setTemperature(temperature),
  },
  {
    step: "step-5",
    text: "The rest of a model works on that tree; random scores and zeros have none. Now try an example, type a sentence, or choose an arc with a click: “How it learns” shows its gradient, and “Change an arc” can pin it.",
  },
];

function setTemperature(value) {
  page.state.temperature = Number(value.toPrecision(3));
  showControls();
  refresh();
}

function show(stop) {
  at = stop;
  for (const { step } of STOPS) byId(step).classList.remove("toured");
  byId("tour-panel").hidden = at < 0;
  if (at < 0) return;
  const { step, text, act } = STOPS[at];
  byId(step).classList.add("toured");
  byId(step).scrollIntoView({ block: "start" });
  byId("tour-place").textContent = `${at + 1} of ${STOPS.length}`;
  byId("tour-text").textContent = text;
  byId("tour-next").textContent = at + 1 < STOPS.length ? "Next" : "Done";
  byId("tour-end").hidden = at + 1 === STOPS.length; // Done does the same
  byId("tour-next").focus({ preventScroll: true });
  act?.();
}

function restore() {
  if (at === 2) setTemperature(temperature); // left halfway
}

function end() {
  restore();
  show(-1);
  byId("tour").focus({ preventScroll: true });
}

export function connectTour() {
  byId("tour").addEventListener("click", () => {
    restore();
    show(0);
  });
  byId("tour-next").addEventListener("click", () => (at + 1 < STOPS.length ? show(at + 1) : end()));
  byId("tour-end").addEventListener("click", end);
  byId("tour-panel").addEventListener("keydown", (event) => event.key === "Escape" && end());
}
