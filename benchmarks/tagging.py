"""Taggers with and without a chain over their tags, on parts of speech and on noun chunks.

    python benchmarks/tagging.py --train train.conllu --dev dev.conllu --test test.conllu \\
        --sentences 2000 --seeds 3 --vectors VECTORS --set train.threads=1 --out FOLDER

Trains on the first sentences of a treebank, tests on all of its test set, and writes FOLDER/runs.csv,
where lone_i counts sentences with an I after an O. Finished runs are not repeated, and interrupted ones
go on where they were.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, product
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import treelax
from benchmarks.machine import describe
from treelax.__main__ import main as treelax_main
from treelax.apps.data.conllu import Sentence, read_conllu
from treelax.files import atomic_write
from treelax.lab.analysis.tables import to_csv

SPLITS, TASKS, OUTPUTS = ("train", "dev", "test"), ("upos", "chunks"), ("softmax", "chain")
NOMINAL = ("NOUN", "PROPN", "PRON")
WITHIN = ("det", "det:predet", "amod", "nummod", "compound", "nmod:poss")
Rows = list[tuple[tuple[str, ...], Sequence[str]]]  # words and tags of sentences
KEYS = ("tags", "output", "seed", "sentences", "words", "accuracy", "f1", "lone_i")
KEYS += (
    "training_sentences",
    "parameters",
    "best_epoch",
    "epochs",
    "machine",
    "commit",
    "settings",
)


def noun_chunks(sentence: Sentence) -> list[str]:
    """BIO tags of base noun phrases, made from a tree.

    A chunk is a noun, name or pronoun with the unbroken words before it that depend on it, directly or
    not, as determiner, adjective, number, compound or possessor, and the rest of a name behind it. A
    chunk within another is left out.
    """
    heads, labels = sentence.heads or (), sentence.labels or ()
    n = len(sentence)

    def part_of(word: int, head: int) -> bool:
        for _ in range(n):
            if heads[word - 1] == head:
                return labels[word - 1] in WITHIN
            word = heads[word - 1]
            if word == 0:
                break
        return False

    tags = ["O"] * n
    for head in sorted(range(1, n + 1), reverse=True):
        nominal = (sentence.tags or ())[head - 1] in NOMINAL and labels[head - 1] != "flat"
        if not nominal or tags[head - 1] != "O":
            continue
        first = last = head
        while first > 1 and tags[first - 2] == "O" and part_of(first - 1, head):
            first -= 1
        while last < n and tags[last] == "O" and labels[last] == "flat" and heads[last] == head:
            last += 1
        tags[first - 1 : last] = ["B-NP", *["I-NP"] * (last - first)]
    return tags


def spans(tags: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last word of every chunk; an I without a chunk before it begins one."""
    start = None
    for place, tag in enumerate([*tags, "O"]):
        if start is not None and tag != "I-NP":
            yield start, place - 1
            start = None
        if start is None and tag != "O":
            start = place


def write_tags(rows: Rows, file: Path) -> None:
    with atomic_write(file, "w") as out:
        for words, tags in rows:
            out.writelines(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True))
            out.write("\n")


def figures(run: Path, test: Rows) -> dict[str, object]:
    """What a run says on the test set."""
    record = json.loads((run / "test.json").read_text())
    predicted = [found.label for found in treelax.load(run).predict([list(w) for w, _ in test])]
    result = {key: record.get(key) for key in ("parameters", "best_epoch", "epochs")}
    result |= {"accuracy": record["splits"]["test"]["accuracy"], "sentences": len(test)}
    result |= {"words": sum(len(words) for words, _ in test)}
    if any(tag == "B-NP" for _, tags in test for tag in tags):
        both = zip(test, predicted, strict=True)
        pairs = [(set(spans(gold)), set(spans(found))) for (_, gold), found in both]
        right = sum(len(gold & found) for gold, found in pairs)
        result["f1"] = 200 * right / sum(len(gold) + len(found) for gold, found in pairs)
        result["lone_i"] = sum(("O", "I-NP") in pairwise(["O", *found]) for found in predicted)
    return result


def run_all(arguments: argparse.Namespace) -> None:
    out: Path = arguments.out
    data: dict[str, dict[str, Rows]] = {}
    for split in SPLITS:
        read = read_conllu(getattr(arguments, split))
        sentences = list(islice(read, arguments.sentences if split == "train" else None))
        words = [sentence.words for sentence in sentences]
        for name, make in (("upos", lambda s: s.tags), ("chunks", noun_chunks)):
            rows = list(zip(words, map(make, sentences), strict=True))
            data.setdefault(name, {})[split] = rows
            (out / name).mkdir(parents=True, exist_ok=True)
            write_tags(rows, out / name / f"{split}.conll")
    machine, results = describe("cpu"), []
    settings = ["model.trees=none", *arguments.set]
    for seed, name, output in product(range(arguments.seeds), TASKS, OUTPUTS):
        run = out / f"{name}-{output}-{seed}"
        options = [part for s in SPLITS for part in (f"--{s}", str(out / name / f"{s}.conll"))]
        options += [part for file in arguments.vectors for part in ("--vectors", file)]
        for setting in (*settings, f"model.output={output}"):
            options += ["--set", setting]
        if not (run / "test.json").exists():
            where = ["--out", str(run), "--seed", str(seed), "--device", "cpu", "--resume"]
            assert treelax_main(["train", "tag", *options, *where]) == 0
        row = {"tags": name, "output": output, "seed": seed, "settings": " ".join(settings)}
        row |= {"training_sentences": len(data[name]["train"])}
        row |= {"machine": machine.machine, "commit": machine.commit}
        results.append(row | figures(run, data[name]["test"]))
        with atomic_write(out / "runs.csv", "w") as file:
            file.write(to_csv(KEYS, results))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    for split in SPLITS:
        parser.add_argument(f"--{split}", required=True)
    parser.add_argument("--sentences", type=int, default=2000, help="of the training file")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--vectors", action="append", default=[])
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE, for all runs")
    parser.add_argument("--out", type=Path, required=True)
    run_all(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
