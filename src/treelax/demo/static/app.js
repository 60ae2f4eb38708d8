// The page: controls change the state, the server answers with trees, the pictures show them.

import { connectArcs } from "./arc_form.js";
import { connectControls, showControls } from "./controls.js";
import { GONE, byId, fail, page, refresh } from "./page.js";
import { Pictures } from "./pictures.js";
import { connectSamples, stop } from "./samples.js";
import { fromHash, initial } from "./state.js";

function redraw() {
  if (page.pictures.reply) page.pictures.draw(page.pictures.reply, page.state);
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
  page.pictures = new Pictures();
  const base = initial(page.info.sources[0]);
  page.state = fromHash(location.hash, base, page.info);
  showControls();
  connectControls();
  connectArcs();
  connectSamples();
  window.addEventListener("hashchange", () => {
    stop();
    page.state = fromHash(location.hash, base, page.info);
    showControls();
    refresh();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let width = 0;
  new ResizeObserver(() => {
    const now = byId("pictures").clientWidth;
    if (now !== width) requestAnimationFrame(redraw);
    width = now;
  }).observe(byId("pictures"));
  refresh();
}

start();
