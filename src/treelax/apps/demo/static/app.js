// The page: controls change the state, the server answers with trees, the pictures show them.

import { clicked, connectArcs } from "./arc_form.js";
import { connectControls, showControls } from "./controls.js";
import { connectLight } from "./light.js";
import { GONE, byId, fail, page, refresh } from "./page.js";
import { Pictures } from "./pictures.js";
import { connectSamples, stop } from "./samples.js";
import { fromHash } from "./state.js";
import { connectTour } from "./tour.js";

function redraw() {
  const { reply, failed } = page.pictures;
  if (reply) page.pictures.draw(reply, page.state, failed);
}

async function start() {
  try {
    page.info = await (await fetch("/api/info")).json();
  } catch {
    fail(GONE);
    return;
  }
  byId("version").textContent = page.info.version;
  byId("source").replaceChildren(...page.info.sources.map((each) => new Option(each.label, each.name)));
  page.pictures = new Pictures(page.info.sizes);
  page.state = fromHash(location.hash, page.info);
  connectControls();
  showControls();
  byId("side").classList.remove("empty");
  connectArcs();
  connectLight(clicked);
  connectSamples();
  connectTour();
  window.addEventListener("hashchange", (event) => {
    stop();
    // the address itself may have been written over since
    page.state = fromHash(new URL(event.newURL).hash, page.info);
    showControls();
    refresh();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== width) requestAnimationFrame(redraw);
    width = contentRect.width;
  }).observe(byId("matrices")); // in one column #pictures is no box and has no width
  refresh();
}

start();
