// All pictures of one reply.

import { drawArcs, fromHeads, fromMatrix } from "./arcs.js";
import { isDark } from "./colours.js";
import { HeatMap } from "./heat.js";
import { drawScatter } from "./scatter.js";

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

  draw(reply, state) {
    this.reply = reply;
    const { words, samples } = reply;
    const largest = Math.max(1, ...[...reply.scores, ...reply.perturbed].map(largestOf));
    for (const map of Object.values(this.maps)) map.measure();
    const room = byId("soft-arcs").parentElement.clientWidth;
    const theme = colours();
    const { pinned, edits } = state;
    const heat = (name, matrix, most, marks = null) =>
      this.anew(name, [matrix, words, most, theme, this.maps[name].room, listed(marks)], () =>
        this.maps[name].draw(matrix, words, most, theme, marks),
      );
    heat("scores", reply.scores, largest, { pinned, edits });
    heat("perturbed", reply.perturbed, largest);
    heat("soft", reply.soft, 1);
    heat("marginals", reply.marginals, 1);
    heat("frequencies", samples.frequencies, 1);
    this.moveCursor(state.head, state.word);

    const tags = reply.answer?.tags ?? null;
    const over = (id, arcs, below = null, tell = () => {}) =>
      this.anew(id, [words, arcs, [...pinned], room, below], () =>
        tell(drawArcs(byId(id), words, arcs, pinned, room, below)),
      );
    over("soft-arcs", fromMatrix(reply.soft), null, (left) => {
      byId("soft-facts").textContent = left
        ? `The ${left} lightest of those that can be seen are left out; the matrix below has all.`
        : "";
    });
    over("best-arcs", [...fromHeads(reply.best), ...fromHeads(reply.best_perturbed, true)], tags);
    byId("best-facts").textContent =
      `The best tree has probability ${Math.exp(reply.best_log_probability).toPrecision(3)}; ` +
      `the entropy of all trees is ${reply.entropy.toFixed(2)} nats.` +
      (tags ? " In colour below the words: what the model reads off its best tree." : "");
    byId("sample-arcs").parentElement.hidden = samples.last === null;
    over("sample-arcs", fromHeads(samples.last ?? []));
    this.anew("scatter", [reply.marginals, samples], () => {
      const { count, frequencies } = samples;
      const { gap, left } = drawScatter(byId("scatter"), reply.marginals, frequencies, count);
      byId("sample-facts").textContent = count
        ? `${count} drawn; largest difference between frequency and marginal ${gap.toFixed(3)}.`
        : "None drawn yet.";
      byId("scatter-facts").textContent = left ? `Without the ${left} smallest.` : "";
    });
    byId("said").textContent = reply.answer?.text ?? "";
    this.drawTable();
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
    return `${position} ${word.length > 24 ? `${word.slice(0, 23)}…` : word}`;
  }

  drawTable() {
    if (!this.reply || !byId("words").open) return;
    const { words, best, best_perturbed, soft, marginals, samples } = this.reply;
    const rows = words.map((word, at) => {
      const column = soft.map((row) => row[at + 1]);
      const strongest = column.indexOf(Math.max(...column));
      return [
        at + 1,
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

function largestOf(row) {
  return row.reduce((most, value) => (value === null ? most : Math.max(most, Math.abs(value))), 0);
}

