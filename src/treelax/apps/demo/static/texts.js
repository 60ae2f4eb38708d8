// A text, what was changed by hand in its arcs, and how the changes follow its words.

export const key = (head, word) => `${head}-${word}`;

export function place(arc) {
  const [head, word] = arc.split("-").map(Number);
  return { head, word };
}

// Whether there is such an arc, or such a span of two words or more.
export const isPart = (head, word, arcs) => (arcs ? word > 0 && head !== word : head > 0 && head < word);

// chosen: none for the arc that the server finds
export function newText(text, chosen = null) {
  const made = {
    text,
    edits: new Map(), // "head-word" to a score
    pinned: new Set(), // "head-word"
    forbidden: new Set(),
    ...(chosen ?? { head: 0, word: 1 }), // the chosen arc
    open: chosen === null, // the server is to choose another
    own: false, // the reader chose it
    words: null, // those that positions count, once the server has said them
    kept: null, // words and changes as they were when the last one was made by hand
  };
  return remember(made);
}

export const changesOf = ({ pinned, forbidden, edits }) => pinned.size + forbidden.size + edits.size;

// A word has one pinned head, no two pinned spans cross, and none is pinned and forbidden at once.
export function pin(text, arc, arcs) {
  const { head, word } = place(arc);
  for (const other of [...text.pinned]) {
    const { head: first, word: last } = place(other);
    const crosses = (first < head && head <= last && last < word) || (head < first && first <= word && word < last);
    if (arcs ? last === word : crosses) text.pinned.delete(other);
  }
  text.forbidden.delete(arc);
  text.pinned.add(arc);
}

export function forbid(text, arc) {
  text.pinned.delete(arc);
  text.forbidden.add(arc);
}

export function free(text, arc) {
  for (const arcs of [text.pinned, text.forbidden, text.edits]) arcs.delete(arc);
}

// Other words, trees or estimator: an arc that nobody chose or changed may say nothing about them.
export function chooseAnew(text) {
  const arc = key(text.head, text.word);
  const changed = [text.pinned, text.forbidden, text.edits].some((arcs) => arcs.has(arc));
  text.open ||= !text.own && !changed;
}

export function freeAll(text) {
  for (const arcs of [text.pinned, text.forbidden, text.edits]) arcs.clear();
  remember(text);
}

// ------------------------------------------------------------------ changes follow the words

// What was done by hand counts from now on. Typing does not: a word is often gone for a moment only,
// "Yesterday the" is "Yesterdaythe" before its space.
export function remember(text) {
  const { words, head, word } = text;
  const [edits, pinned, forbidden] = [new Map(text.edits), new Set(text.pinned), new Set(text.forbidden)];
  text.kept = { words, head, word, edits, pinned, forbidden };
  return text;
}

// Let the changes follow to new words; returns how many have lost theirs.
export function follow(text, words) {
  const before = text.words;
  text.words = words;
  const { kept } = text;
  kept.words ??= words;
  if (before === null || sameWords(before, words)) return 0;
  const places = survivors(kept.words, words);
  const moved = (arc) => {
    const { head, word } = place(arc);
    return places.has(head) && places.has(word) ? key(places.get(head), places.get(word)) : null;
  };
  const all = (arcs) => [...arcs].map(moved).filter(Boolean);
  text.pinned = new Set(all(kept.pinned));
  text.forbidden = new Set(all(kept.forbidden));
  text.edits = new Map(
    [...kept.edits].map(([arc, score]) => [moved(arc), score]).filter(([arc]) => arc !== null),
  );
  const chosen = moved(key(kept.head, kept.word));
  if (!text.open) Object.assign(text, chosen ? place(chosen) : { open: true });
  return changesOf(kept) - changesOf(text);
}

const sameWords = (one, other) =>
  one.length === other.length && one.every((word, at) => word === other[at]);

// Old positions of the words that are still there to their new ones; the root stays.
export function survivors(before, after) {
  const pairs = [[0, 0]];
  const least = Math.min(before.length, after.length);
  let front = 0;
  while (front < least && before[front] === after[front]) front++;
  for (let at = 1; at <= front; at++) pairs.push([at, at]);
  let back = 0;
  while (back < least - front && before.at(-1 - back) === after.at(-1 - back)) back++;
  const inside = common(before.slice(front, before.length - back), after.slice(front, after.length - back));
  for (const [old, now] of inside) pairs.push([front + old + 1, front + now + 1]);
  for (let left = back; left > 0; left--) {
    pairs.push([before.length - left + 1, after.length - left + 1]);
  }
  // one word where one was: it is being typed
  pairs.push([before.length + 1, after.length + 1]);
  const found = new Map(pairs.slice(0, -1));
  pairs.slice(1).forEach(([old, now], at) => {
    const [oldBefore, nowBefore] = pairs[at];
    if (old - oldBefore === 2 && now - nowBefore === 2) found.set(old - 1, now - 1);
  });
  return found;
}

// The longest common subsequence, as pairs of indices.
function common(one, other) {
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      lengths[i][j] =
        one[i] === other[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const pairs = [];
  let [i, j] = [0, 0];
  while (i < one.length && j < other.length) {
    if (one[i] === other[j]) pairs.push([i++, j++]);
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return pairs;
}
