"use strict";
// Filters of the examples, tips of headings, the place in the menu, and keyboards for boxes that scroll.
// Without it all examples and all notes are shown.
(() => {
  const FIRST = 12;
  const form = document.getElementById("filters");
  const examples = [...document.querySelectorAll(".example")];

  const field = (name) => document.getElementById(`f-${name}`);
  const chosen = (name) => field(name)?.value ?? "";
  const bound = (name, otherwise) => {
    const value = Number.parseInt(chosen(name), 10);
    return Number.isNaN(value) ? otherwise : value;
  };
  const plain = (text) => text.normalize("NFKC").toLocaleLowerCase();

  const filters = () => ({
    text: plain(chosen("text").trim()),
    least: bound("least", 0),
    most: bound("most", Infinity),
    right: chosen("right"),
    exact: chosen("exact"),
    label: chosen("label"),
    run: chosen("run"),
  });

  // right or gold: all runs that are shown; wrong or another: one of them
  const fits = (said, key, wanted) => {
    if (wanted === "") return true;
    const found = said.map((each) => each.dataset[key]);
    return wanted === "1" ? found.length > 0 && found.every((one) => one === "1") : found.includes(wanted);
  };

  const passes = (example, wanted) => {
    const length = Number(example.dataset.length);
    if (length < wanted.least || length > wanted.most) return false;
    if (wanted.label !== "" && !example.dataset.labels.split(" ").includes(wanted.label)) return false;
    const sentences = [...example.querySelectorAll(".sentence bdi")];
    if (!sentences.some((sentence) => plain(sentence.textContent).includes(wanted.text))) return false;
    const said = [...example.querySelectorAll("div.said")].filter((each) => !each.hidden);
    return fits(said, "right", wanted.right) && fits(said, "exact", wanted.exact);
  };

  const show = () => {
    const wanted = filters();
    let count = 0;
    for (const example of examples) {
      for (const said of example.querySelectorAll(".said")) {
        said.hidden = wanted.run !== "" && said.dataset.run !== wanted.run;
      }
      example.hidden = !passes(example, wanted);
      count += example.hidden ? 0 : 1;
    }
    document.getElementById("shown").textContent = `${count} of ${examples.length} examples`;
    document.getElementById("none").hidden = count > 0;
    left(count);
    reach();
  };

  // the style sheet shows a dozen until all are asked for
  const more = document.getElementById("more");
  const left = (count) => {
    if (more === null) return;
    const gallery = document.getElementById("gallery");
    more.hidden = gallery.classList.contains("all") || count <= FIRST;
    more.textContent = `Show ${count - FIRST} more ${count - FIRST === 1 ? "example" : "examples"}`;
  };
  more?.addEventListener("click", () => {
    const shown = examples.filter((example) => !example.hidden);
    document.getElementById("gallery").classList.add("all");
    left(shown.length);
    reach();
    // the button is gone: the keyboard goes on at the first that is new
    shown[FIRST].tabIndex = -1;
    shown[FIRST].focus({ preventScroll: true });
  });

  // a box is a stop for the keyboard only where there is something to scroll
  const reach = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      if (box.scrollWidth > box.clientWidth) {
        box.tabIndex = 0;
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", box.dataset.label);
      } else {
        box.removeAttribute("tabindex");
        box.removeAttribute("role");
        box.removeAttribute("aria-label");
      }
    }
  };

  if (form !== null) {
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(show));
    show(); // a browser may keep what was in the fields
  }
  reach();
  addEventListener("resize", reach);

  // one tip for all headings, below the one that the pointer or the keyboard is on
  const tip = document.getElementById("tip");
  let told = null;
  const tell = (heading) => {
    told?.removeAttribute("aria-describedby");
    told = heading;
    tip.hidden = heading === null;
    if (heading === null) return;
    tip.textContent = heading.dataset.tip;
    heading.setAttribute("aria-describedby", "tip");
    const box = heading.getBoundingClientRect();
    const below = box.bottom + 2 + tip.offsetHeight < innerHeight;
    tip.style.left = `${Math.max(8, Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${below ? box.bottom + 2 : box.top - 2 - tip.offsetHeight}px`;
  };
  const heading = (event) => event.target.closest?.(".tip") ?? null;
  for (const kind of ["mouseover", "focusin"]) {
    addEventListener(kind, (event) => {
      if (event.target !== tip) tell(heading(event) ?? heading({ target: document.activeElement }));
    });
  }
  addEventListener("click", (event) => heading(event)?.focus()); // Safari does not focus buttons
  addEventListener("keydown", (event) => { if (event.key === "Escape") tell(null); });
  addEventListener("scroll", () => tell(told), { passive: true, capture: true }); // it moves along

  // the section that is being read, in the menu
  const links = [...document.querySelectorAll("nav a")];
  const place = () => {
    const end = innerHeight + scrollY > document.documentElement.scrollHeight - 2;
    const begun = (link) => document.querySelector(link.hash).getBoundingClientRect().top < innerHeight / 3;
    const current = (end ? links : links.filter(begun)).at(-1) ?? links[0];
    for (const link of links) link.ariaCurrent = link === current ? "true" : null;
  };
  place();
  addEventListener("scroll", place, { passive: true });

  for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", reach);
})();
