// A matrix of arcs as coloured cells: rows are heads from the root on, columns words. Of spans rows are
// first words, columns last words.

import { scoreColour, scoreParts, shareColour, shareParts } from "./colours.js";
import { isPart, place } from "./texts.js";

const LARGEST_CELL = 30;
const LABELLED_CELL = 10; // smaller cells have numbers in place of words, and not all of them
const LONGEST_LABEL = 60; // pixels
const LABELS = LONGEST_LABEL + 6; // room for them beside and above the cells
const SPACED_CELL = 8; // smaller cells touch each other

export class HeatMap {
  constructor(name, colours) {
    this.host = document.getElementById(`heat-${name}`);
    this.legend = document.getElementById(`legend-${name}`);
    this.colours = colours; // "score" or "share"
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    [this.cursor, this.lit] = ["cursor", "light"].map((name) => {
      const box = document.createElement("div");
      box.className = name;
      box.hidden = true;
      return box;
    });
    this.host.replaceChildren(this.canvas, this.cursor, this.lit);
  }

  // Asked of all matrices before any is drawn: every drawing makes the browser lay out anew.
  measure() {
    this.room = this.host.clientWidth || 250;
  }

  // matrix: (n + 1) × (n + 1); labels and numbers: of the root and all words; theme: colours by name;
  // arcs: parts are arcs, not spans; largest: of the scale of scores; marks: pinned and edited arcs
  draw(matrix, { labels, numbers, theme, arcs }, largest = 1, marks = null) {
    const count = labels.length - 1;
    this.labels = labels;
    this.arcs = arcs;
    this.first = arcs ? 0 : 1; // there are no spans from the root
    const room = this.room;
    const labelled = Math.floor((room - LABELS) / count) >= LABELLED_CELL;
    this.left = labelled ? LABELS : 24;
    this.top = labelled ? LABELS : 18;
    this.cell = Math.max(1, Math.min(LARGEST_CELL, Math.floor((room - this.left) / count)));
    this.count = count;
    const width = Math.min(this.left + count * this.cell + 1, room);
    const rows = count + 1 - this.first;
    const height = this.top + rows * this.cell + 1;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const ctx = this.canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    this.drawLabels(ctx, labels, numbers, labelled, theme.quiet);
    const gap = this.cell >= SPACED_CELL ? 1 : 0;
    this.drawCells(ctx, matrix, largest, theme);
    if (gap) this.spaceCells(ctx, matrix, theme.edge);
    ctx.strokeStyle = theme.line;
    ctx.lineWidth = 1;
    const side = count * this.cell;
    ctx.strokeRect(this.left - 0.5, this.top - 0.5, side + 1 - gap, rows * this.cell + 1 - gap);
    if (marks) this.drawMarks(ctx, marks, theme.pin);
    if (this.legend) this.drawLegend(largest, theme.dark);
  }

  // As the pixels of a small picture: a rectangle for each would take far longer.
  drawCells(ctx, matrix, largest, theme) {
    const count = this.count;
    const rows = count + 1 - this.first;
    const image = new ImageData(count, rows);
    const none = theme.line.match(/[0-9a-f]{2}/gi).map((pair) => Number.parseInt(pair, 16));
    for (let head = 0; head <= count; head++) {
      for (let word = 1; word <= count; word++) {
        if (!isPart(head, word, this.arcs)) continue;
        const value = matrix[head][word];
        let colour = none;
        if (value !== null) {
          colour =
            this.colours === "score"
              ? scoreParts(value, largest, theme.dark)
              : shareParts(value, theme.dark);
        }
        const at = 4 * ((head - this.first) * count + word - 1);
        [image.data[at], image.data[at + 1], image.data[at + 2]] = colour;
        image.data[at + 3] = 255;
      }
    }
    const small = new OffscreenCanvas(count, rows);
    small.getContext("2d").putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(small, this.left, this.top, count * this.cell, rows * this.cell);
  }

  // A gap behind each row and column, and a cross on what is forbidden.
  spaceCells(ctx, matrix, colour) {
    const { left, top, cell, count, first } = this;
    const side = count * cell;
    for (let at = 1; at <= count + 1; at++) {
      ctx.clearRect(left + at * cell - 1, top, 1, side + cell);
      ctx.clearRect(left, top + at * cell - 1, side, 1);
    }
    matrix.forEach((row, head) =>
      row.forEach((value, word) => {
        if (value !== null || !isPart(head, word, this.arcs)) return;
        cross(ctx, left + (word - 1) * cell, top + (head - first) * cell, cell - 1, colour);
      }),
    );
  }

  drawLabels(ctx, labels, numbers, labelled, colour) {
    ctx.fillStyle = colour;
    ctx.font = `${labelled ? Math.min(12, Math.max(9, this.cell - 1)) : 9}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    const step = labelled ? 1 : Math.ceil(22 / this.cell);
    const half = this.cell / 2;
    labels.forEach((label, at) => {
      if (at % step) return;
      const text = labelled ? shortened(ctx, label) : String(numbers[at]);
      ctx.textAlign = "right";
      if (at >= this.first) ctx.fillText(text, this.left - 4, this.top + (at - this.first) * this.cell + half);
      // half of a number beyond the last column would be cut off
      if (at === 0 || (!labelled && at + 10 / this.cell > this.count)) return;
      ctx.save();
      ctx.translate(this.left + (at - 1) * this.cell + half, this.top - 4);
      if (labelled) ctx.rotate(-Math.PI / 2);
      ctx.textAlign = labelled ? "left" : "center";
      ctx.fillText(text, 0, labelled ? 0 : -4);
      ctx.restore();
    });
  }

  drawMarks(ctx, marks, colour) {
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.lineWidth = 2;
    for (const [arcs, mark] of [
      [marks.pinned, (x, y) => ctx.strokeRect(x + 1, y + 1, this.cell - 3, this.cell - 3)],
      [marks.edits.keys(), (x, y) => ctx.fillRect(x + this.cell - 5, y + 1, 3, 3)],
    ]) {
      for (const arc of arcs) {
        const { head, word } = place(arc);
        if (Math.max(head, word) > this.count) continue;
        mark(this.left + (word - 1) * this.cell, this.top + (head - this.first) * this.cell);
      }
    }
  }

  drawLegend(largest, dark) {
    if (this.explained === `${largest} ${dark}`) return;
    this.explained = `${largest} ${dark}`;
    const bar = document.createElement("canvas");
    [bar.width, bar.height] = [90, 10];
    bar.setAttribute("aria-hidden", "true");
    const ctx = bar.getContext("2d");
    for (let x = 0; x < 90; x++) {
      const part = x / 89;
      ctx.fillStyle =
        this.colours === "score" ? scoreColour(2 * part - 1, 1, dark) : shareColour(part, dark);
      ctx.fillRect(x, 0, 1, 10);
    }
    const ends = this.colours === "score" ? [-largest, largest] : [0, 1];
    const [low, high] = ends.map((value) => {
      const text = document.createElement("span");
      text.textContent = (this.colours === "score" ? short(value) : String(value)).replaceAll("-", "−");
      return text;
    });
    this.legend.replaceChildren(low, bar, high);
  }

  moveCursor(head, word) {
    this.surround(this.cursor, head, word);
  }

  // A cell, or all heads of a word; of spans there are none that belong to one word.
  showLight(focus) {
    if (focus === null || (focus.head === undefined && !this.arcs)) this.lit.hidden = true;
    else if (focus.head === undefined) this.surround(this.lit, 0, focus.word, this.count + 1);
    else this.surround(this.lit, focus.head, focus.word);
  }

  surround(box, head, word, rows = 1) {
    const inside = rows > 1 || isPart(head, word, this.arcs);
    box.hidden = !this.cell || !inside || Math.max(head, word) > this.count;
    if (box.hidden) return;
    const size = Math.max(this.cell, 5);
    Object.assign(box.style, {
      left: `${this.left + (word - 1) * this.cell - 1}px`,
      top: `${this.top + (head - this.first) * this.cell - 1}px`,
      width: `${size + 1}px`,
      height: `${size * rows + 1}px`,
    });
  }

  // The arc under the pointer, or null.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const word = Math.floor((event.clientX - box.left - this.left) / this.cell) + 1;
    const head = Math.floor((event.clientY - box.top - this.top) / this.cell) + this.first;
    const inside = word >= 1 && word <= this.count && head >= 0 && head <= this.count;
    // the whole word, where its label may be too short for it
    const [row, column] = [this.labels[head], this.labels[word]];
    this.canvas.title = (word < 1 && head >= 0 && row) || (head < this.first && word >= 1 && column) || "";
    return inside && isPart(head, word, this.arcs) ? { head, word } : null;
  }
}

function cross(ctx, x, y, size, colour) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(x + 2, y + 2);
  ctx.lineTo(x + size - 2, y + size - 2);
  ctx.moveTo(x + size - 2, y + 2);
  ctx.lineTo(x + 2, y + size - 2);
  ctx.stroke();
}

// Scores of one model are a thousand times those of another.
// Never longer than a phone has room for.
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e5 || (size > 0 && size < 1e-3)) return value.toExponential(1);
  return size >= 10 ? value.toFixed(0) : value.toPrecision(2);
}

function shortened(ctx, text) {
  const fits = (shown) => ctx.measureText(shown).width <= LONGEST_LABEL;
  const letters = [...text].slice(0, LONGEST_LABEL); // none is narrower than a pixel
  if (letters.length === [...text].length && fits(text)) return text;
  while (letters.length && !fits(`${letters.join("")}…`)) letters.pop();
  return `${letters.join("")}…`;
}
