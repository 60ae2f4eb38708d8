/* The soft tree of a sentence in the page itself: the relaxed Eisner algorithm of treelax.ops.soft_tree
   and best_tree (one child of the root), written once more, small enough to read beside
   src/treelax/ops/chart/reference.py. tests/test_docs_browser.py holds its numbers against the library's. */
"use strict";

const softTree = (() => {
  const words = ["They", "saw", "her", "duck", "under", "tables"];
  // scores[head][word] of treelax's English parser, divided by 5; the best head of each word has 0
  const scores = [
    [0, -1.4, 0, -1.3, -0.9, -1.2, -0.6],
    [0, 0, -3.9, -7.1, -5.5, -4.7, -4.4],
    [0, 0, 0, -0.8, 0, -1.6, 0],
    [0, -7.8, -5.4, 0, -2.7, -4.6, -2.4],
    [0, -3.3, -1.9, 0, 0, -1.4, -0.1],
    [0, -7.3, -3.9, -3.8, -2.3, 0, -0.7],
    [0, -3.9, -1.8, -1.9, -1.2, 0, 0],
  ];

  /* What a cell does with the scores of its splits: weights of the splits, and the value passed up. */
  const weigh = (s) => {
    const top = Math.max(...s);
    const e = s.map((x) => Math.exp(x - top));
    const sum = e.reduce((a, b) => a + b);
    return [e.map((x) => x / sum), top + Math.log(sum)];
  };
  const choices = {
    softmax: (s) => {
      const [b] = weigh(s);
      return [b, b.reduce((sum, x, k) => sum + x * s[k], 0)];
    },
    entropy: weigh,
    argmax: (s) => {
      const best = s.indexOf(Math.max(...s));
      return [s.map((_, k) => Number(k === best)), s[best]];
    },
  };

  /* The tree of scores w, tree[head][word], bottom-up and then top-down. */
  function tree(w, choose) {
    const size = w.length;
    const table = () => w.map(() => Array(size).fill(0));
    const right = table(), left = table(), openRight = table(), openLeft = table();
    const splits = { open: table(), right: table(), left: table() };
    const inner = (i, j) => (i === 0 ? [0] : range(i, j)); // the root has one child
    for (let width = 1; width < size; width++) {
      for (let i = 0; i + width < size; i++) {
        const j = i + width;
        const [b, v] = choose(inner(i, j).map((k) => right[i][k] + left[k + 1][j]));
        splits.open[i][j] = b;
        openRight[i][j] = v + w[i][j];
        openLeft[i][j] = v + w[j][i];
        [splits.right[i][j], right[i][j]] = choose(
          range(i + 1, j + 1).map((k) => openRight[i][k] + right[k][j]));
        if (i > 0) {
          [splits.left[i][j], left[i][j]] = choose(
            range(i, j).map((k) => left[i][k] + openLeft[k][j]));
        }
      }
    }
    const giveRight = table(), giveLeft = table(), result = table();
    giveRight[0][size - 1] = 1;
    for (let width = size - 1; width > 0; width--) {
      for (let i = 0; i + width < size; i++) {
        const j = i + width;
        range(i + 1, j + 1).forEach((k, n) => {
          const share = giveRight[i][j] * splits.right[i][j][n];
          result[i][k] += share;
          giveRight[k][j] += share;
        });
        if (i > 0) {
          range(i, j).forEach((k, n) => {
            const share = giveLeft[i][j] * splits.left[i][j][n];
            giveLeft[i][k] += share;
            result[j][k] += share;
          });
        }
        // the arcs between i and j are complete: no shorter span adds to them
        inner(i, j).forEach((k, n) => {
          const share = (result[i][j] + (i > 0 ? result[j][i] : 0)) * splits.open[i][j][n];
          giveRight[i][k] += share;
          giveLeft[k + 1][j] += share;
        });
      }
    }
    return result;
  }

  const range = (from, to) => Array.from({ length: to - from }, (_, n) => from + n);
  const soft = (w, temperature, relaxation) =>
    tree(w.map((row) => row.map((x) => x / temperature)), choices[relaxation]);
  const best = (w) => tree(w, choices.argmax);
  return { words, scores, soft, best };
})();

/* The picture and its controls; words and arcs keep their places, only their weights change. */
function showSoftTree(box) {
  const { words, scores, soft, best } = softTree;
  const SVG = "http://www.w3.org/2000/svg";
  const STEP = 17, TOP = 30, BASE = TOP + STEP * (words.length - 1), BELOW = BASE + 30;
  const HIGH = BASE - TOP + 12; // of an arc from the root
  const GAP = 60, LEFT = 30;
  const x = (m) => LEFT + GAP * (m - 1);
  const add = (parent, name, attributes, text = "") => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    parent.append(element);
    return element;
  };

  box.innerHTML = `
    <form>
      <label>Temperature <input type="range" min="-4" max="2.5" step="0.1" value="0">
        <output></output></label>
      <label>Noise <input type="checkbox"></label>
      <button type="button" class="md-button">Draw new noise</button>
      <label>Relaxation <select><option value="softmax">softmax, as in the paper</option>
        <option value="entropy">entropy: marginals</option></select></label>
    </form>
    <svg role="img" viewBox="0 0 ${2 * LEFT + GAP * (words.length - 1)} ${BELOW + HIGH + 16}"></svg>
    <p role="status"></p>`;
  const [slider, noisy] = box.querySelectorAll("input");
  const picture = box.querySelector("svg");
  const noise = scores.map((row) => row.map(() => 0));

  function arc(kind, head, word, base, sign) {
    const group = add(picture, "g", { class: kind, "data-head": head, "data-word": word });
    const tip = base + 7 * sign;
    if (head === 0) {
      const end = base + sign * HIGH;
      add(group, "path", { class: "line", d: `M${x(word)} ${end}V${tip}` });
      add(group, "text", { x: x(word), y: sign < 0 ? end - 4 : end + 12 }, "root");
    } else {
      const side = Math.sign(word - head), start = x(head) + 7 * side;
      const y = tip + sign * STEP * (Math.abs(word - head) - 0.4);
      const turn = side * sign < 0 ? 1 : 0;
      add(group, "path", {
        class: "line",
        d: `M${start} ${base}V${y - sign * 8}A8 8 0 0 ${turn} ${start + 8 * side} ${y}` +
          `H${x(word) - 8 * side}A8 8 0 0 ${turn} ${x(word)} ${y - sign * 8}V${tip}`,
      });
    }
    add(group, "path", { d: `M${x(word)} ${base}l-3.5 ${7 * sign}h7z` });
    return group;
  }
  const arcs = [["soft", BASE, -1], ["best", BELOW, 1]].map(([kind, base, sign]) =>
    scores.map((row, head) => row.map((_, word) =>
      word && head !== word ? arc(kind, head, word, base, sign) : null)));
  words.forEach((word, m) => add(picture, "text", { x: x(m + 1), y: BASE + 20 }, word));

  function show() {
    const temperature = Math.exp(Number(slider.value));
    const perturbed = scores.map((row, h) => row.map((s, m) => s + (noisy.checked ? noise[h][m] : 0)));
    const trees = [soft(perturbed, temperature, box.querySelector("select").value), best(perturbed)];
    trees.forEach((tree, n) => arcs[n].forEach((row, h) => row.forEach((group, m) => {
      if (group === null) return;
      const weight = tree[h][m];
      group.dataset.weight = weight.toFixed(6);
      group.style.opacity = Math.min(weight / 0.05, 1) * (0.25 + 0.75 * weight);
    })));
    box.querySelector("output").textContent = temperature.toFixed(2);
    const name = (h) => (h ? words[h - 1] : "the root");
    const heads = (m) => scores.map((_, h) => h).filter((h) => trees[0][h][m] >= 0.05)
      .sort((a, b) => trees[0][b][m] - trees[0][a][m])
      .map((h) => `${name(h)} ${trees[0][h][m].toFixed(2)}`).join(", ");
    const told = `Heads of “duck”: ${heads(4)}. Heads of “tables”: ${heads(6)}.`;
    box.querySelector("p").textContent = told;
    picture.setAttribute("aria-label", `Above the words the soft tree, below them the best tree. ${told}`);
  }

  function draw() {
    for (const row of noise) row.forEach((_, m) => { row[m] = -Math.log(-Math.log(Math.random())); });
    noisy.checked = true;
    show();
  }
  box.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  box.querySelector("form").addEventListener("input", (event) => {
    if (event.target === noisy && noisy.checked && noise[0][1] === 0) draw();
    else show();
  });
  box.querySelector("button").addEventListener("click", draw);
  show();
}

document.querySelectorAll(".soft-tree").forEach(showSoftTree);
