// A dot for every arc: its exact marginal to the right, its frequency among the samples upwards.

import { element } from "./arcs.js";

const LEFT = 38;
const TOP = 8;
const SIDE = 200;
const LEAST = 0.001;
const MOST_DOTS = 1500; // the others would lie upon each other near 0

// Returns the largest difference, and how many arcs of those large enough have no dot.
export function drawScatter(svg, marginals, frequencies, count) {
  const x = (share) => LEFT + SIDE * share;
  const y = (share) => TOP + SIDE * (1 - share);
  const parts = [
    element("rect", { class: "axis", x: LEFT, y: TOP, width: SIDE, height: SIDE }),
    element("line", { class: "same", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
  ];
  for (const share of [0, 0.5, 1]) {
    parts.push(
      element("text", { x: x(share), y: TOP + SIDE + 13, "text-anchor": "middle" }, share),
      element("text", { x: LEFT - 5, y: y(share) + 4, "text-anchor": "end" }, share),
    );
  }
  parts.push(element("text", { x: x(0.5), y: TOP + SIDE + 27, "text-anchor": "middle" }, "marginal"));
  const turned = `translate(12 ${y(0.5)}) rotate(-90)`;
  parts.push(element("text", { transform: turned, "text-anchor": "middle" }, "frequency"));
  const { gap, dots } = count > 0 ? compared(marginals, frequencies) : { gap: 0, dots: [] };
  dots.sort((a, b) => b.size - a.size);
  // all in one: a browser takes far longer for as many circles
  const d = dots.slice(0, MOST_DOTS).map(({ marginal, frequency }) => `M${x(marginal)} ${y(frequency)}h0`);
  parts.push(element("path", { class: "dots", d: d.join("") }));
  svg.replaceChildren(...parts);
  return { gap, left: Math.max(dots.length - MOST_DOTS, 0) };
}

function compared(marginals, frequencies) {
  const dots = [];
  let gap = 0;
  marginals.forEach((row, head) =>
    row.forEach((marginal, word) => {
      const frequency = frequencies[head][word];
      gap = Math.max(gap, Math.abs(marginal - frequency));
      if (marginal < LEAST && frequency === 0) return;
      dots.push({ marginal, frequency, size: Math.max(marginal, frequency) });
    }),
  );
  return { gap, dots };
}
