// All pictures of one reply.

import { drawTree, fromMatrix, fromParts } from "./arcs.js";
import { isDark } from "./colours.js";
import { HeatMap } from "./heat.js";
import { drawScatter } from "./scatter.js";
import { hasArcs } from "./state.js";
import { place } from "./texts.js";

const MUCH = 20; // times as large: what is smaller changes nothing that can be seen
const CERTAIN = 0.99;
const FLAT = 5e-4; // gradients that are smaller, for scores with a spread of 1, are shown as none
const LARGEST_GAP = 1e-4; // of SparseMAP; smaller ones cannot be seen
const LEAST_PROBABILITY = 1e-3; // smaller ones are shown as logarithms
const byId = (id) => document.getElementById(id);

const descent = (largest, flat) => {
  if (largest >= flat) return "Gradient descent raises the orange scores and lowers the blue ones.";
  return largest > 0
    ? "Its gradient is almost 0 here, and hardly changes a score."
    : "The gradient that this estimator gives is 0 here, and changes no score.";
};

export class Pictures {
  constructor(sizes) {
    this.sizes = sizes; // of trees, in pixels
    const kinds = { scores: "score", noise: "score", perturbed: "score", gradient: "score" };
    this.maps = Object.fromEntries(
      ["scores", "noise", "perturbed", "soft", "gradient", "marginals", "frequencies"].map((name) => [
        name,
        new HeatMap(name, kinds[name] ?? "share"),
      ]),
    );
    this.reply = null;
    this.drawn = new Map(); // what each picture shows
    byId("words").addEventListener("toggle", () => this.drawTable());
  }

  // failed: there is no answer to the state, so these pictures are of another one
  draw(reply, state, failed = false) {
    this.reply = reply;
    this.failed = failed;
    this.arcs = hasArcs(state);
    for (const map of Object.values(this.maps)) map.measure();
    const labels = ["root", ...reply.words];
    const frame = { labels, numbers: labels.map((_, at) => this.number(at)), theme: colours(), arcs: this.arcs };
    this.drawMatrices(frame, state.texts[state.shown]);
    this.drawTrees(frame, state.texts[state.shown]);
    this.drawSamples();
    this.drawAnswer(reply.answer);
    this.drawTable();
    byId("null-facts").hidden = !reply.null;
    byId("spread").textContent = failed ? "" : spreadFacts(reply, state);
    if (failed) this.forgetAnswer();
  }

  drawMatrices(frame, { pinned, edits, head, word }) {
    const { scores, noise, perturbed, soft, gradient, marginals, samples } = this.reply;
    const heat = (name, matrix, largest, marks = null) =>
      this.anew(name, [matrix, frame, largest, this.maps[name].room, listed(marks)], () =>
        this.maps[name].draw(matrix, frame, largest, marks),
      );
    // one scale for all three, or noise would not be seen at its size
    const three = [scores, noise, perturbed].map((matrix) => centred(matrix, this.arcs));
    const largest = Math.max(...three.map(largestOf)) || 1;
    heat("scores", three[0], largest, { pinned, edits });
    heat("noise", three[1], largest);
    heat("perturbed", three[2], largest);
    heat("soft", soft, 1);
    const slopes = soft.map((row, h) => row.map((_, m) => (gradient ? -gradient[h][m] : 0)));
    const flat = FLAT / this.reply.spread;
    heat("gradient", slopes, Math.max(largestOf(slopes), flat));
    heat("marginals", marginals, 1);
    heat("frequencies", samples.frequencies, 1);
    this.moveCursor(head, word);
    byId("loss").textContent = gradient
      ? `Suppose the loss is 1 − weight of ${this.name(head, word)}`.replace(/\.?$/, ". ") + descent(largestOf(gradient), flat)
      : "";
  }

  drawTrees({ labels, numbers, arcs }, { pinned }) {
    const { soft, gap, best, best_perturbed, samples } = this.reply;
    const room = byId("soft-arcs").parentElement.clientWidth;
    const tree = (id, parts, twoSides = false) => {
      const shown = { names: labels, numbers, parts, pinned, room, sizes: this.sizes, hasArcs: arcs, twoSides };
      let left = null;
      this.anew(id, [labels, numbers, parts, [...pinned], room, arcs], () => {
        left = drawTree(byId(id), shown);
      });
      return left;
    };
    this.left = tree("soft-arcs", fromMatrix(soft)) ?? this.left;
    const facts = [];
    if (this.left) facts.push(`The ${this.left} lightest visible ${arcs ? "arcs" : "spans"} are not drawn; the matrix below has all.`);
    if (gap > LARGEST_GAP) facts.push("SparseMAP stopped early, so these weights are approximate; a lower temperature takes fewer trees.");
    byId("soft-facts").textContent = facts.join(" ");
    tree("best-arcs", [...fromParts(best), ...fromParts(best_perturbed, true)], true);
    tree("sample-arcs", fromParts(samples.last ?? []));
    const changed = best_perturbed.filter((part) => !best.some((own) => same(own, part))).length;
    byId("best-facts").textContent =
      `${probability(this.reply.best_log_probability)}, ` +
      `entropy of all trees ${this.reply.entropy.toFixed(2)} nats. ` +
      (changed ? `This noise changes ${changed} of ${best.length} ${arcs ? "arcs" : "spans"}.` : "This noise changes nothing.");
  }

  drawSamples() {
    const { marginals, samples } = this.reply;
    this.anew("scatter", [marginals, samples], () => {
      const { count, frequencies } = samples;
      const { gap, left } = drawScatter(byId("scatter"), marginals, frequencies, count);
      byId("sample-facts").textContent = count
        ? `${count} drawn; largest difference between frequency and marginal: ${gap.toFixed(3)}.`
        : "None drawn yet.";
      byId("scatter-facts").textContent = left ? `The ${left} smallest are not drawn.` : "";
    });
  }

  // A line, and a tag under each word.
  drawAnswer(answer) {
    byId("said").textContent = answer?.text ?? "There is no model behind these scores, so there is nothing to say.";
    const pairs = (answer?.tags ?? []).map((tag, at) => {
      const pair = document.createElement("li");
      const [word, below] = [this.reply.words[at + this.reply.null], tag].map((text) => {
        const part = document.createElement("span");
        part.textContent = text;
        return part;
      });
      below.className = "tag";
      pair.append(word, below);
      return pair;
    });
    byId("tags").replaceChildren(...pairs);
  }

  // Changes that leave no tree: the scores as they would be, over what there is without them.
  drawChanges(plain, state) {
    const text = state.texts[state.shown];
    const scores = plain.scores.map((row) => [...row]);
    const inside = (arcs) => [...arcs].map(place).filter((arc) => Math.max(arc.head, arc.word) < scores.length);
    for (const [arc, score] of text.edits) {
      for (const { head, word } of inside([arc])) scores[head][word] = score;
    }
    for (const { head, word } of inside(text.forbidden)) scores[head][word] = null;
    for (const { head, word } of hasArcs(state) ? inside(text.pinned) : []) {
      scores.forEach((row, other) => (row[word] = other === head ? row[word] : null));
    }
    this.draw({ ...plain, scores }, state, true);
  }

  // What was said of another state must not stand beside this one.
  forgetAnswer() {
    this.failed = true;
    for (const id of ["said", "best-facts", "spread", "loss"]) byId(id).textContent = "";
    byId("tags").replaceChildren();
  }

  // Draw a picture unless it shows this already: most changes leave most pictures as they are.
  anew(name, shown, draw) {
    if (same(this.drawn.get(name), shown)) return;
    this.drawn.set(name, shown);
    draw();
  }

  moveCursor(head, word) {
    for (const map of Object.values(this.maps)) map.moveCursor(head, word);
  }

  // Whether a part lights up with what the pointer is on: the part itself, or those of a word.
  concerns({ head, word }, first, last) {
    if (head !== undefined) return first === head && last === word;
    return this.arcs ? last === word : first <= word && word <= last;
  }

  // The heaviest heads of a word, or spans around it.
  distribution(word, most) {
    const { soft, scores } = this.reply;
    const rows = soft.flatMap((row, head) => row.map((weight, other) => ({ head, other, weight })));
    const own = rows.filter(({ head, other, weight }) => weight > 0 && this.concerns({ word }, head, other));
    own.sort((a, b) => b.weight - a.weight);
    return {
      title: `${this.arcs ? "Heads of" : "Spans with"} ${this.label(word)}`,
      rows: own.slice(0, most).map(({ head, other, weight }) => ({
        name: this.arcs ? this.label(head) : this.name(head, other),
        weight,
        score: scores[head][other] === null ? "forbidden" : written(scores[head][other], 1),
      })),
    };
  }

  // All numbers of one arc, in words.
  describe(head, word) {
    const reply = this.reply;
    if (!reply || Math.max(head, word) > reply.words.length) return "";
    const score = reply.scores[head][word];
    const facts = [score === null ? "forbidden" : `score ${written(score, 2)}`];
    if (!this.failed) {
      const noise = reply.noise[head][word];
      if (score !== null) facts.push(`noise ${noise < 0 ? "−" : "+"}${Math.abs(noise).toFixed(2)}`);
      facts.push(`weight ${reply.soft[head][word].toFixed(3)}`);
      facts.push(`marginal ${reply.marginals[head][word].toFixed(3)}`);
      if (reply.samples.count) facts.push(`drawn ${reply.samples.frequencies[head][word].toFixed(3)}`);
    }
    return `${this.name(head, word)}: ${facts.join(", ")}`;
  }

  name(head, word) {
    return `${this.label(head)} ${this.arcs ? "→" : "…"} ${this.label(word)}`;
  }

  label(position) {
    if (position === 0) return "root";
    const word = this.reply?.words[position - 1] ?? "…";
    return `${this.number(position)} ${word.length > 24 ? `${word.slice(0, 23)}…` : word}`.trim();
  }

  // Words count from 1; NULL is none.
  number(position) {
    if (!this.reply?.null || position === 0) return position;
    return position === 1 ? "" : position - 1;
  }

  drawTable() {
    byId("words").hidden = !this.arcs; // spans have no heads
    if (!this.reply || !this.arcs || !byId("words").open) return;
    const { words, best, best_perturbed, soft, marginals, samples } = this.reply;
    const rows = words.map((word, at) => {
      const column = soft.map((row) => row[at + 1]);
      const strongest = column.indexOf(Math.max(...column));
      return [
        this.number(at + 1),
        word,
        this.label(best[at][0]),
        marginals[best[at][0]][at + 1].toFixed(3),
        this.label(best_perturbed[at][0]),
        this.label(strongest),
        column[strongest].toFixed(3),
        samples.last ? this.label(samples.last[at][0]) : "",
      ];
    });
    const made = rows.map((cells) => {
      const row = document.createElement("tr");
      row.append(
        ...cells.map((text, at) => {
          const cell = document.createElement(at === 1 ? "th" : "td");
          if (at === 1) cell.scope = "row";
          cell.textContent = text;
          return cell;
        }),
      );
      return row;
    });
    byId("table").tBodies[0].replaceChildren(...made);
  }
}

// Those of long sentences are too small to be read, or to be numbers other than 0.
function probability(logarithm) {
  const value = Math.exp(logarithm);
  return value < LEAST_PROBABILITY ? `Log probability ${written(logarithm, 2)} nats` : `Probability ${value.toPrecision(3)}`;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = ["line", "edge", "quiet", "pin"].map((name) => [name, style.getPropertyValue(`--${name}`)]);
  return { ...Object.fromEntries(named), dark: isDark() };
}

// With a minus sign, not a hyphen.
const written = (value, digits) => value.toFixed(digits).replace("-", "−");

const listed = (marks) => marks && [[...marks.pinned], [...marks.edits]];

// Whether two values are equal through and through; far faster than to compare them as text.
function same(one, other) {
  if (one === other) return true;
  if (!one || !other || typeof one !== "object" || typeof other !== "object") return false;
  if (Array.isArray(one)) {
    return one.length === other.length && one.every((value, at) => same(value, other[at]));
  }
  return Object.keys({ ...one, ...other }).every((name) => same(one[name], other[name]));
}

// Less the mean of each column, or of all spans: what they share changes no tree.
export function centred(matrix, arcs) {
  const means = matrix.map((_, word) => mean(matrix.map((row) => row[word])));
  const overall = mean(matrix.flat());
  return matrix.map((row) =>
    row.map((value, word) => (value === null ? null : value - (arcs ? means[word] : overall))),
  );
}

function mean(values) {
  const numbers = values.filter((value) => value !== null);
  return numbers.reduce((sum, value) => sum + value, 0) / Math.max(numbers.length, 1);
}

const largestOf = (matrix) =>
  matrix.reduce((most, row) => row.reduce((own, value) => Math.max(own, Math.abs(value ?? 0)), most), 0);

// A line where scores are so large that neither noise nor temperature changes anything, or none.
function spreadFacts({ scores, noise, best_log_probability }, { temperature, relative }) {
  const [spread, drawn] = [scores, noise].map((matrix) => range(matrix.flat()));
  const certain = Math.exp(best_log_probability) > CERTAIN;
  if (relative || !certain || spread <= MUCH * Math.max(drawn, temperature)) return "";
  return (
    `Scores differ by up to ${spread.toFixed(0)}, noise by about ${drawn.toFixed(0)}: make noise and ` +
    "temperature relative to the spread of scores, or turn them up, to see other trees."
  );
}

function range(values) {
  const numbers = values.filter((value) => value !== null);
  return numbers.reduce((a, b) => Math.max(a, b), -Infinity) - numbers.reduce((a, b) => Math.min(a, b), Infinity);
}
