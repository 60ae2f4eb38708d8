"""Sections of figures on sentences and on the demo; see `benchmarks.figures`."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import RESULTS, ROOT, Rows, newest, short, spread, table
from treelax.analysis.text_table import TABLES, label

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
    columns = ("dev_accuracy", "test_accuracy", "test_soft_accuracy")
    lines = []
    for preset, paper in zip(chosen.presets, chosen.rows.values(), strict=True):
        own = [run for run in runs if run["preset"] == preset]
        if own:
            figures = [over_seeds(own, column) for column in columns]
            lines.append([label(preset), paper or "–", *figures, str(len(own))])
    header = ["accuracy, %", chosen.paper, chosen.dev, chosen.test]
    return table([*header, f"{chosen.test}, soft trees", "seeds"], lines)


def about(folder: str) -> str:
    """What a table says of itself: data, vectors, command, machine."""
    lines = (ROOT / "results" / folder / "table.md").read_text(encoding="utf-8").splitlines()
    return f"{lines[2]} [Every run](results/{folder}/runs.csv)."


def snli() -> str:
    """SNLI, on a part of the training data."""
    return "\n\n".join([text_table("snli", "snli-tuned"), about("snli-tuned")])


# Trials of five epochs to compare: what a line says, the round, and the settings that single it out.
TRIALS = (
    ("dropout 0.1, word vectors of length 1", 2, "model.dropout=0.1 model.word_scale=1"),
    ("… of length 3", 2, "model.dropout=0.1 model.word_scale=3"),
    ("no dropout, length 3", 3, ""),
    ("… no bias for heads on the left", 3, "model.left_head_bias=0"),
    ("… half the noise", 3, "model.noise_scale=0.5"),
    ("… no noise", 3, "model.noise=none"),
    ("… straight-through", 3, "model.straight_through=true"),
    ("… entropy relaxation", 3, "model.relaxation=entropy"),
)
ROUND = {
    2: "train.learning_rate=0.001",
    3: "train.learning_rate=0.001 model.word_scale=3 model.dropout=0",
}
LEFT = "model.left_head_bias=2"  # which trees start with


def trials() -> str:
    """Some of the trials behind the recipe for SNLI, on dev."""
    rows = runs_of("tuning", "snli.csv")
    common = set.intersection(
        *(set(row["settings"].split()) for row in rows if row["round"] == "3")
    )

    def cells(preset: str, number: int, settings: str) -> list[str]:
        wanted = {*ROUND[number].split(), *settings.split()}
        if preset != "snli-none" and "left_head_bias" not in settings:
            wanted.add(LEFT)
        for row in rows:
            same = set(row["settings"].split()) - common == wanted - common
            if same and (row["preset"], row["round"]) == (preset, str(number)):
                return [row["best_dev_accuracy"], row["soft_dev_accuracy"]]
        return ["–", "–"]

    lines = [
        [text, *cells("snli-tree-2", *which), cells("snli-none", *which)[0]]
        for text, *which in TRIALS
    ]
    header = ["dev of SNLI after 5 epochs, %", "latent tree, 2 GCN", "soft", "no intra-attention"]
    return "\n\n".join(
        [
            table(header, lines),
            f"One seed each, of {len(rows)} [trials](results/tuning/README.md); "
            "batches of 128, learning rate 0.001.",
        ]
    )


def sst() -> str:
    """SST."""
    return "\n\n".join([text_table("sst", "sst-tuned"), about("sst-tuned")])


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
    lines = [
        [row["control"], *(short(float(row[key])) for key in ("ms_median", "ms_p90", "ms_worst"))]
        for row in rows
    ]
    first = load[0]
    return "\n\n".join(
        [
            table(["from the change to its picture, ms", "median", "90 %", "worst"], lines),
            f"{rows[0]['words']} words, each control {rows[0]['times']} times, browser and server on "
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
    "trials": trials,
    "sst": sst,
    "precision": precision,
    "text-training": text_training,
    "text-encoding": text_encoding,
    "demo": demo,
}
