// All pictures of one reply.

import { drawArcs, fromHeads, fromMatrix } from "./arcs.js";
import { isDark } from "./colours.js";
import { HeatMap } from "./heat.js";
import { drawScatter } from "./scatter.js";
import { place } from "./texts.js";

const MUCH = 20; // times as large: what is smaller changes nothing that can be seen
const CERTAIN = 0.99;
const byId = (id) => document.getElementById(id);

export class Pictures {
  constructor() {
    this.maps = {
      scores: new HeatMap("scores", "score"),
      perturbed: new HeatMap("perturbed", "score"),
      soft: new HeatMap("soft", "share"),
      marginals: new HeatMap("marginals", "share"),
      frequencies: new HeatMap("frequencies", "share"),
    };
    this.reply = null;
    this.drawn = new Map(); // what each picture shows
    byId("words").addEventListener("toggle", () => this.drawTable());
  }

  // failed: there is no answer to the state, so these pictures are of another one
  draw(reply, state, failed = false) {
    this.reply = reply;
    this.failed = failed;
    const { words, samples } = reply;
    const labels = ["root", ...words];
    const numbers = labels.map((_, at) => this.number(at));
    for (const map of Object.values(this.maps)) map.measure();
    const room = byId("soft-arcs").parentElement.clientWidth;
    const theme = colours();
    const { pinned, edits, head, word } = state.texts[state.shown];
    const heat = (name, matrix, marks = null) =>
      this.anew(name, [matrix, labels, numbers, theme, this.maps[name].room, listed(marks)], () =>
        this.maps[name].draw(matrix, labels, numbers, theme, marks),
      );
    heat("scores", reply.scores, { pinned, edits });
    heat("perturbed", reply.perturbed);
    heat("soft", reply.soft);
    heat("marginals", reply.marginals);
    heat("frequencies", samples.frequencies);
    this.moveCursor(head, word);
    byId("null-facts").hidden = !reply.null;
    byId("spread").textContent = failed ? "" : spreadFacts(reply, state);

    const tags = reply.answer?.tags ?? null;
    const over = (id, arcs, below = null, tell = () => {}) =>
      this.anew(id, [labels, numbers, arcs, [...pinned], room, below], () =>
        tell(drawArcs(byId(id), labels, numbers, arcs, pinned, room, below)),
      );
    over("soft-arcs", fromMatrix(reply.soft), null, (left) => {
      byId("soft-facts").textContent = left
        ? `The ${left} lightest visible arcs are not drawn; the matrix below has all.`
        : "";
    });
    over("best-arcs", [...fromHeads(reply.best), ...fromHeads(reply.best_perturbed, true)], tags);
    byId("best-facts").textContent =
      `The best ${state.heads ? "heads have" : "tree has"} probability ${Math.exp(reply.best_log_probability).toPrecision(3)}; ` +
      `the entropy is ${reply.entropy.toFixed(2)} nats.` +
      (tags ? " In colour below the words: what the model reads off its best tree." : "");
    byId("sample-arcs").parentElement.hidden = samples.last === null;
    over("sample-arcs", fromHeads(samples.last ?? []));
    this.anew("scatter", [reply.marginals, samples], () => {
      const { count, frequencies } = samples;
      const { gap, left } = drawScatter(byId("scatter"), reply.marginals, frequencies, count);
      byId("sample-facts").textContent = count
        ? `${count} drawn; largest difference between frequency and marginal: ${gap.toFixed(3)}.`
        : "None drawn yet.";
      byId("scatter-facts").textContent = left ? `The ${left} smallest are not drawn.` : "";
    });
    byId("said").textContent = reply.answer?.text ?? "";
    this.drawTable();
    if (failed) this.forgetAnswer();
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
    for (const { head, word } of inside(text.pinned)) {
      scores.forEach((row, other) => (row[word] = other === head ? row[word] : null));
    }
    this.draw({ ...plain, scores }, state, true);
  }

  // What was said of another state must not stand beside this one.
  forgetAnswer() {
    this.failed = true;
    for (const id of ["said", "best-facts", "spread"]) byId(id).textContent = "";
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

  // All numbers of one arc, in words.
  describe(head, word) {
    const reply = this.reply;
    if (!reply || Math.max(head, word) > reply.words.length) return "";
    const score = reply.scores[head][word];
    if (this.failed) {
      return `${this.name(head, word)}: ${score === null ? "forbidden" : `score ${score.toFixed(2)}`}`;
    }
    const facts = [
      score === null ? "forbidden" : `score ${score.toFixed(2)}`,
      score === null ? null : `perturbed ${reply.perturbed[head][word].toFixed(2)}`,
      `soft ${reply.soft[head][word].toFixed(3)}`,
      `marginal ${reply.marginals[head][word].toFixed(3)}`,
      reply.samples.count ? `drawn ${reply.samples.frequencies[head][word].toFixed(3)}` : null,
    ];
    return `${this.name(head, word)}: ${facts.filter(Boolean).join(", ")}`;
  }

  name(head, word) {
    return `${this.label(head)} → ${this.label(word)}`;
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
    if (!this.reply || !byId("words").open) return;
    const { words, best, best_perturbed, soft, marginals, samples } = this.reply;
    const rows = words.map((word, at) => {
      const column = soft.map((row) => row[at + 1]);
      const strongest = column.indexOf(Math.max(...column));
      return [
        this.number(at + 1),
        word,
        this.label(best[at]),
        marginals[best[at]][at + 1].toFixed(3),
        this.label(best_perturbed[at]),
        this.label(strongest),
        column[strongest].toFixed(3),
        samples.last ? this.label(samples.last[at]) : "",
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

function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = ["line", "edge", "quiet", "pin"].map((name) => [name, style.getPropertyValue(`--${name}`)]);
  return { ...Object.fromEntries(named), dark: isDark() };
}

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

// A line where scores are so large that neither noise nor temperature changes anything, or none.
function spreadFacts({ scores, perturbed, best_log_probability }, { temperature }) {
  const values = scores.flat();
  const spread = range(values);
  const noise = range(perturbed.flat().map((value, at) => (value === null ? null : value - values[at])));
  const certain = Math.exp(best_log_probability) > CERTAIN;
  if (!certain || spread <= MUCH * Math.max(noise, temperature)) return "";
  return (
    `Scores differ by up to ${spread.toFixed(0)}, noise by about ${noise.toFixed(0)}: turn up the noise ` +
    "or the temperature to see other trees. Exact samples use neither."
  );
}

function range(values) {
  const numbers = values.filter((value) => value !== null);
  return numbers.reduce((a, b) => Math.max(a, b)) - numbers.reduce((a, b) => Math.min(a, b));
}
