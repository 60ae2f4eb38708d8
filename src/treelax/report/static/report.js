"use strict";
// The filters of the gallery, and keyboards for boxes that scroll. Without it all examples are shown.
(() => {
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
    reach();
  };

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

  if (form !== null && examples.length > 1) {
    form.hidden = false;
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(show));
    show(); // a browser may keep what was in the fields
  }
  reach();
  addEventListener("resize", reach);
  for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", reach);
})();
