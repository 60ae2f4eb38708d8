"""Sections of figures on sentences and on the demo; see `benchmarks.figures`."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from statistics import mean

from benchmarks.figures_records import RESULTS, ROOT, Rows, newest, short, spread, table
from treelax.lab.tables.text import TABLES, label

PARTS = ("part-29k", "part-29k-longer", "part-58k", "part-58k-longer")  # of SNLI's training pairs
PRECISIONS = {"tf32": "", "float32": "float32", "bf16": "bf16"}  # and where their runs are


def runs_of(folder: str, file: str = "runs.csv") -> Rows:
    """All runs of a table of ``results/``."""
    with (ROOT / "results" / folder / file).open(newline="", encoding="utf-8") as source:
        return list(csv.DictReader(source))


def over_seeds(runs: Rows, column: str) -> str:
    """Mean and spread of a column, or a dash where it is empty."""
    values = [float(run[column]) for run in runs if run[column]]
    return spread(values) if values else "–"


def text_table(name: str, folder: str) -> str:
    """One of the paper's tables 2 and 3 and ours, from the runs on record."""
    chosen, runs = TABLES[name].tuned, runs_of(folder)
    headings = {
        "dev_accuracy": chosen.dev,
        "dev_soft_accuracy": f"{chosen.dev}, soft trees",
        "test_accuracy": chosen.test,
        "test_soft_accuracy": f"{chosen.test}, soft trees",
    }
    # soft trees on test, or on dev where there is no test set
    skipped = "dev_soft" if any(run["test_accuracy"] for run in runs) else "test"
    columns = [column for column in headings if not column.startswith(skipped)]
    lines = []
    for preset, paper in chosen.figures.items():
        own = [run for run in runs if run["preset"] == preset]
        if own:
            figures = [over_seeds(own, column) for column in columns]
            lines.append([label(preset), paper or "–", *figures, str(len(own))])
    header = ["accuracy, %", chosen.paper, *(headings[column] for column in columns), "seeds"]
    return table(header, lines)


def about(folder: str) -> str:
    """What a table says of itself: data, vectors, command, machine."""
    lines = (ROOT / "results" / folder / "table.md").read_text(encoding="utf-8").splitlines()
    return f"{lines[2]} [Every run](results/{folder}/runs.csv)."


def snli() -> str:
    """SNLI, on a part of the training data."""
    return "\n\n".join([text_table("snli", "snli-tuned"), about("snli-tuned")])


def snli_amount() -> str:
    """What trees bring on SNLI by the amount of training data."""
    lines = []
    seeds = set()  # numbers of them
    for folder in (*PARTS, "shorter", ""):
        runs = runs_of(str(Path("snli-tuned") / folder))
        own = {
            row: [run for run in runs if run["preset"] == f"snli-tuned-{row}"]
            for row in ("none", "tree-1", "tree-2")
        }
        seeds |= {len(found) for found in own.values() if found}
        [(pairs, epochs, updates)] = {
            tuple(int(run[key]) for key in ("training_examples", "epochs", "updates"))
            for run in runs
        }
        lines.append(
            [
                f"{pairs:,}",
                str(epochs),
                f"{epochs * updates:,}",
                *(over_seeds(found, "test_accuracy") for found in own.values()),
                *(_gain(own, f"{split}_accuracy") for split in ("test", "dev")),
            ]
        )
    labels = [label(f"snli-{row}") for row in ("none", "tree-1", "tree-2")]
    tables = ", ".join(
        f"[{part}](results/snli-tuned/{part}/table.md)" for part in (*PARTS, "shorter")
    )
    header = ["pairs", "epochs", "updates", *labels, "2 GCN over none, test", "the same, dev"]
    return "\n\n".join(
        [
            table(header, lines),
            f"Accuracy on test in percent, {'/'.join(map(str, sorted(seeds)))} seeds each. The last "
            "line is that of the table above, the one before it has as many pairs and fewer epochs, the "
            f"others a part of its pairs (`python benchmarks/part_of.py`). Runs and commands: {tables}.",
        ]
    )


def _gain(runs: dict[str, Rows], column: str) -> str:
    """How far trees with two layers are above no intra-attention."""
    none, tree = (mean(float(run[column]) for run in runs[row]) for row in ("none", "tree-2"))
    return f"{tree - none:+.2f}".replace("-", "−")


def multinli() -> str:
    """Kinds of trees on MultiNLI, on parts of the training data."""
    longer = "ablation-tuned/longer"
    [epochs], [usual] = ({run["epochs"] for run in runs_of(f)} for f in (longer, "ablation-tuned"))
    return "\n\n".join(
        [
            text_table("ablation", "ablation-tuned"),
            about("ablation-tuned"),
            f"Rows that were also trained for {epochs} epochs instead of {usual}:",
            text_table("ablation", longer),
            "The same data and seeds; [command](results/ablation-tuned/longer/table.md), "
            "[every run](results/ablation-tuned/longer/runs.csv).",
        ]
    )


def sst() -> str:
    """SST, and the baseline with settings of its own."""
    chosen = runs_of("sst-tuned/baseline")
    return "\n\n".join(
        [
            text_table("sst", "sst-tuned"),
            about("sst-tuned"),
            "For the BiLSTM without a tree dev prefers learning rate 0.003 and no consistency: with "
            f"them it has dev {over_seeds(chosen, 'dev_accuracy')}, test "
            f"{over_seeds(chosen, 'test_accuracy')} ({len(chosen)} seeds, "
            f"{'/'.join(sorted({run['device'] for run in chosen}))}; "
            "[runs](results/sst-tuned/baseline/runs.csv)).",
        ]
    )


def precision() -> str:
    """The same runs with other arithmetic."""
    lines = []
    for name, folder in PRECISIONS.items():
        runs = runs_of(str(Path("sst-tuned") / folder))
        for preset in ("sst-tuned-none", "sst-tuned-tree"):
            own = [run for run in runs if run["preset"] == preset]
            figures = [over_seeds(own, column) for column in ("dev_accuracy", "test_accuracy")]
            lines.append([f"{label(preset)}, {name}", *figures, str(len(own))])
    return "\n\n".join(
        [
            table(["SST, accuracy, %", "dev", "test", "seeds"], lines),
            "The same seeds with other arithmetic of the layers, `--set train.precision=…`; trees "
            "are float32 in all. [tf32](results/sst-tuned/runs.csv), "
            "[float32](results/sst-tuned/float32/runs.csv), [bf16](results/sst-tuned/bf16/runs.csv).",
        ]
    )


def text_training() -> str:
    """Throughput of training, GPU and CPU."""
    found: dict[tuple[str, str], tuple[str, Rows]] = {}
    for path in sorted(RESULTS.glob("text-training-*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        found[rows[0]["device"], rows[0]["precision"]] = path.name, rows
    lines = [
        [
            f"{label(row['preset'])}, {device}, {arithmetic}",
            f"{int(row['pairs_per_second']):,}",
            row["step_ms"],
            f"{float(row['over_heads_2']):.2f}×",
        ]
        for (device, arithmetic), (_, rows) in reversed(found.items())
        for row in rows
    ]
    machines = dict.fromkeys(
        f"{rows[0]['machine'].split(', OMP')[0]}, torch {rows[0]['torch']}"
        for _, rows in found.values()
    )
    files = ", ".join(f"[{name}](benchmarks/results/{name})" for name, _ in found.values())
    return "\n\n".join(
        [
            table(["SNLI, batch of 64", "pairs/s", "step, ms", "step, over head selection"], lines),
            "Forward, backward, clipping and Adam on pairs of a part of SNLI, as `treelax train snli` "
            "does them; the models take turns, medians over blocks. `python "
            f"benchmarks/text_training.py` on {'; '.join(machines)}. {files}.",
        ]
    )


def text_encoding() -> str:
    """Texts to numbers."""
    name, [row] = newest("text-encoding")
    return (
        f"{int(row['pairs']):,} {row['data']} pairs of plain text ({int(row['words']):,} words) are "
        f"read, tokenised and encoded into the cache in {row['encode_s']} s on one core, and mapped "
        f"from there in {row['again_s']} s the next time. `python benchmarks/text_encoding.py` on "
        f"{row['machine'].split(', OMP')[0]}; [{name}](benchmarks/results/{name})."
    )


def demo() -> str:
    """Latency of the page, and the server under load."""
    name, rows = newest("demo-latency")
    load_name, load = newest("demo-load")
    of = {"random": "random", "english": "English parser"}
    lines = [
        [row["control"], of[row["source"]]]
        + [short(float(row[key])) for key in ("ms_median", "ms_p90", "ms_worst")]
        for row in rows
    ]
    kinds = {row["source"]: row["structure"].replace("nonp", "non-p") for row in rows}
    first = load[0]
    return "\n\n".join(
        [
            table(
                ["from the change to its picture, ms", "scores", "median", "90 %", "worst"],
                lines,
                left=2,
            ),
            f"{rows[0]['words']} words, with {kinds['random']} trees for random scores and, as the page "
            f"opens, {kinds['english']} trees (they have one relaxation) for the English parser's; "
            f"each control {rows[0]['times']} times, browser and server on "
            f"{rows[0]['machine'].split(', OMP')[0]}. `python benchmarks/demo_latency.py`; "
            f"[{name}](benchmarks/results/{name}).",
            f"{first['clients']} clients at once for {first['seconds']} seconds, {first['words']} "
            f"words a request: {int(first['requests']):,} requests, {first['errors']} errors, half of "
            f"the answers within {float(first['ms_p50']):.0f} ms, 99 % within "
            f"{float(first['ms_p99']):.0f} ms; memory {first['memory_start_mb']} MB before and "
            f"{first['memory_end_mb']} MB after. `python benchmarks/demo_load.py` on the same machine, "
            f"with the clients; [{load_name}](benchmarks/results/{load_name}).",
        ]
    )


TEXT_SECTIONS: dict[str, Callable[[], str]] = {
    "snli": snli,
    "snli-amount": snli_amount,
    "multinli": multinli,
    "sst": sst,
    "precision": precision,
    "text-training": text_training,
    "text-encoding": text_encoding,
    "demo": demo,
}
