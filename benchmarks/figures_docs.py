"""Sections of figures that only pages of docs/ have; see `benchmarks.figures`."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable

from benchmarks.figures_records import (
    LISTOPS,
    RESULTS,
    SIZES,
    Rows,
    find,
    line,
    listops_runs,
    newest,
    ratio,
    short,
    spread,
    table,
    times,
)
from treelax.lab.listops.table import LABELS, PAPER

# the presets of the balanced recipe, and how a row of the choice between them begins
ESTIMATORS = {
    "balanced-mc": "Gumbel noise, forward relaxed",
    "balanced-entropy": "… with the entropy relaxation",
    "balanced-mc-st": "… straight-through",
    "balanced-heads": "… head selection, no tree",
    "balanced-zero": "no noise, forward relaxed",
    "balanced-zero-st": "… straight-through",
}
FOUND = 99.0  # percent of attachment from which trees count as found


def estimators() -> str:
    """Relaxations and estimators side by side, all else equal."""
    runs = listops_runs("longer")
    columns = ("operator_accuracy", "soft_operator_accuracy", "attachment", "exact_trees")
    lines = []
    for preset, label in ESTIMATORS.items():
        own = [run for run in runs if run["preset"] == preset]
        figures = [spread([float(run[column]) for run in own]) for column in columns]
        found = sum(float(run["attachment"]) >= FOUND for run in own)
        lines.append([label, *figures, f"{found} of {len(own)}"])
    header = [
        "ListOps, test, %",
        "accuracy",
        "accuracy, soft trees",
        "attachment",
        "exact trees",
        f"seeds with attachment ≥ {FOUND:.0f}",
    ]
    return "\n\n".join(
        [
            table(header, lines),
            "The balanced recipe in all rows: [what it is](docs/listops.md), "
            "[every run](results/listops/longer/runs.csv).",
        ]
    )


# of the trials on ListOps: what they change in the reading above, and the longest expressions
READINGS = (
    ("an epoch has to beat the previous one; dev score: accuracy with discrete trees", 50),
    ("dev score: accuracy with soft trees", 50),
    ("dev score: accuracy with soft trees", 40),
    ("dev score: accuracy with soft trees", 30),
    ("dev score: log-likelihood with soft trees", 50),
    ("dev score: log-likelihood with discrete trees", 40),
    ("constant rate", 40),
    ("constant rate", 30),
    ("dev score: accuracy with soft trees; Adam's state cleared on reloading", 50),
    ("dev score: accuracy with soft trees; Adam's state reloaded too", 50),
    ("dev score: accuracy with soft trees; loss summed over an expression", 50),
    ("dev score: accuracy with soft trees; one root", 50),
    (
        "an epoch has to beat the previous one; dev score: accuracy with discrete trees; embeddings "
        "start normal with deviation 1",
        50,
    ),
    ("straight-through with backpointer trees, dev score: accuracy with these", 50),
    ("straight-through with backpointer trees, dev score: accuracy with these", 40),
    ("constant rate; straight-through and dev score with backpointer trees", 50),
    ("the presets' reading; straight-through and its dev score with backpointer trees", 50),
    ("the presets' reading; one root", 50),
    ("the presets' reading; temperature 0.5", 50),
    ("the presets' reading; temperature 0.2", 50),
    ("the presets' reading; no root arcs", 50),
    ("the presets' reading; root arcs score 0 with noise and the composer does not see them", 50),
    ("the presets' reading; all discrete trees are backpointer trees", 50),
    ("the presets' reading; no root arcs; all discrete trees are backpointer trees", 50),
    ("the presets' reading; no root arcs; embeddings start normal with deviation 1", 50),
    ("the presets' reading; no root arcs; embeddings start normal with deviation 2", 50),
)
CELLS = ("paper-zero", "paper-zero-st", "paper-mc", "paper-mc-st")


def readings() -> str:
    """What was tried to find one reading of the appendix for all four cells."""
    with (LISTOPS / "trials.csv").open(newline="", encoding="utf-8") as file:
        trials = list(csv.DictReader(file))

    def cell(reading: str, longest: int, preset: str) -> str:
        return ", ".join(
            f"{float(t['operator_accuracy']):.0f}/{float(t['attachment']):.0f}"
            + (f" ({float(t['soft_operator_accuracy']):.0f})" if preset == "paper-zero" else "")
            + ("" if t["epochs"] == "100" else "†")
            for t in trials
            if (t["reading"], t["max_length"], t["preset"]) == (reading, str(longest), preset)
        )

    lines = [
        [reading, str(longest), *(cell(reading, longest, preset) or "–" for preset in CELLS)]
        for reading, longest in READINGS
    ]
    header = [
        "dev, accuracy/attachment of each seed, %",
        "tokens",
        *(LABELS[preset] for preset in CELLS),
    ]
    return "\n\n".join(
        [
            table(header, lines),
            "With discrete trees, in the epoch that the reading's dev score chooses; in brackets the "
            "accuracy with soft trees. Above the presets' reading an epoch has to beat the best so "
            "far where nothing else is said. † stopped before epoch 100. Some of "
            f"{len(trials)} [trials](results/listops/trials.csv), all on an NVIDIA H200.",
        ]
    )


def closest() -> str:
    """Test figures of the reading that comes closest to the paper's four cells."""
    with (LISTOPS / "closest.csv").open(newline="", encoding="utf-8") as file:
        runs = list(csv.DictReader(file))
    columns = ("operator_accuracy", "soft_operator_accuracy", "attachment")
    columns += ("best_tree_operator_accuracy", "best_tree_attachment")
    lines = []
    for preset in CELLS:
        own = [run for run in runs if run["preset"] == preset]
        figures = [spread([float(run[column]) for run in own]) for column in columns]
        lines.append([LABELS[preset], PAPER[preset] or "–", *figures])
    header = ["no root arcs, backpointer trees, test, %", "paper acc / att", "accuracy"]
    header += [
        "accuracy, soft trees",
        "attachment",
        "accuracy, best trees",
        "attachment, best trees",
    ]
    caption = "Five seeds each, 10,000 test expressions of at most 50 tokens, on an NVIDIA H200; "
    return f"{table(header, lines)}\n\n{caption}[every run](results/listops/closest.csv)."


def growth() -> str:
    """Time and memory of long sentences."""
    name, rows = newest("cpu")
    both, ours = "forward+backward", "treelax native softmax"
    lines = []
    before: tuple[int, float] | None = None
    for n in (40, 80, 160, 320):
        row: Rows = [
            row
            for row in rows
            if (row["operation"], row["contender"], row["n"], row["threads"])
            == (both, ours, str(n), "1")
        ]
        each = 1e3 * float(row[0]["cpu_ms"]) / int(row[0]["batch"])
        exponent = "–" if before is None else f"{math.log(each / before[1], n / before[0]):.2f}"
        lines.append([str(n), row[0]["batch"], short(each), exponent, short(_peak(row))])
        before = n, each
    header = ["words", "batch", "µs per sentence", "growth exponent", "peak MB of the batch"]
    long, sentences = newest("long-sentence")
    alone = find(sentences, "ratio", words="320", threads="2")
    return "\n\n".join(
        [
            table(header, lines),
            "Soft tree, forward + backward, float32, one CPU thread; the exponent is the logarithm of "
            "the ratio of two lines' times, to the base of the ratio of their words. "
            f"`make bench`; [{name}](benchmarks/results/{name}).",
            "A sentence of 256 words or more fills a vector by itself. One of 320, softmax relaxation, "
            f"on two threads, is {alone:.1f} times as fast as with the previous kernel, in one process: "
            "`python benchmarks/long_sentence.py LIBRARY` on "
            f"{sentences[0]['machine'].split(', OMP')[0]}; [{long}](benchmarks/results/{long}).",
        ]
    )


def _peak(rows: Rows) -> float:
    return float(rows[0]["peak_mb"])


def all_operations() -> str:
    """Every contender's times, one thread."""
    name, rows = newest("cpu")
    kinds = dict.fromkeys((row["operation"], row["contender"]) for row in rows)

    def cell(operation: str, contender: str) -> Callable[[int], str]:
        return lambda n: short(
            find(rows, "cpu_ms", operation=operation, contender=contender, n=n, threads=1)
        )

    lines = [
        line(f"{operation}, {contender}", cell(operation, contender))
        for operation, contender in kinds
    ]
    header = ["operation, whose", *(f"n = {n}" for n in (10, 20, 40, 80))]
    return "\n\n".join(
        [
            table(header, lines),
            "Milliseconds of CPU time for a batch of 64, one thread, medians; *ragged* are lengths from "
            f"n/2 to n. [{name}](benchmarks/results/{name}); its [report]"
            f"(benchmarks/results/{name.replace('.csv', '.md')}) has two threads and memory too.",
        ]
    )


def slower() -> str:
    """Every operation of a peer that is faster than ours, one thread, in the record of the CPU."""
    name, rows = newest("cpu")
    rows = [row for row in rows if row["threads"] == "1" and row["ragged"] == "False"]
    kinds = list(dict.fromkeys((row["operation"], row["contender"]) for row in rows))

    def share(column: str, operation: str, ours: str, peer: str) -> Callable[[int], float | None]:
        def value(n: int) -> float | None:
            above, below = (
                find(rows, column, operation=operation, contender=who, n=n) for who in (peer, ours)
            )
            return ratio(above, below)

        return value

    def lost(column: str, own: str) -> list[list[str]]:
        lines = []
        for operation, ours in kinds:
            peers = [peer for kind, peer in kinds if kind == operation and "treelax" not in peer]
            for peer in peers if ours.startswith(own) else []:
                value = share(column, operation, ours, peer)
                if any((value(n) or 1) < 1 for n in SIZES):
                    what = f"{operation}, {ours}: {peer} takes"
                    lines.append(line(what, lambda n, value=value: times(value(n))))
        return lines

    kernels = "none" if not lost("cpu_ms", "treelax native") else "one"
    header = ["where a peer is faster", *(f"n = {n}" for n in SIZES)]
    return "\n\n".join(
        [
            f"In this record {kernels} of the C++ kernels is slower than a peer. Our vectorised "
            "PyTorch, which runs if the kernel could not be built, is slower in these operations:",
            table(header, lost("cpu_ms", "treelax")),
            "Peak memory where a peer needs less than one of our C++ kernels:",
            table(header, lost("peak_mb", "treelax native")),
            "Ratios of medians on one CPU thread, batch of 64; below 1 the peer is better. We have "
            "not benchmarked SynJax, nor the chains, grammars and parsers of the peers. `make bench`; "
            f"[{name}](benchmarks/results/{name}).",
        ]
    )


def training_step() -> str:
    """The share of the tree operation in a step of training."""
    name, rows = newest("training-step")
    lines = [
        [row["preset"], row["max_length"], row["step_ms"], row["tree_ms"], row["share_percent"]]
        for row in rows
    ]
    header = ["preset", "tokens, at most", "step, ms", "tree operation, ms", "share, %"]
    return "\n\n".join(
        [
            table(header, lines),
            f"ListOps, batch of 64, one CPU thread, medians of CPU time over {rows[0]['batches']} "
            f"batches. `python benchmarks/training_step.py` on {rows[0]['machine'].split(', OMP')[0]}; "
            f"torch {rows[0]['torch']}; [{name}](benchmarks/results/{name}).",
        ]
    )


def cuda_report() -> str:
    """Where all figures of the GPU are."""
    name, _ = newest("cuda")
    report = name.replace(".csv", ".md")
    if not (RESULTS / report).is_file():
        return ""
    return f"All operations of Triton's kernels: [{report}](benchmarks/results/{report})."


MORE_SECTIONS: dict[str, Callable[[], str]] = {
    "estimators": estimators,
    "readings": readings,
    "closest": closest,
    "growth": growth,
    "all-operations": all_operations,
    "slower": slower,
    "training-step": training_step,
    "cuda-report": cuda_report,
}
