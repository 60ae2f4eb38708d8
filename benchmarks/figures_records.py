"""Sections of figures of speed and of ListOps, and what all sections are made with."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean

from benchmarks.report import short, table
from treelax.apps.tasks.listops.config import TrainConfig
from treelax.apps.tasks.listops.config import preset as listops_preset
from treelax.lab.analysis.tables import spread
from treelax.lab.listops.table import KINDS, LABELS, PAPER, TURN, as_trained, turns

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
LISTOPS = ROOT / "results" / "listops"
SIZES = (10, 20, 40, 80)
OWN = ("operator_accuracy", "attachment")  # the columns that the paper has too
Rows = list[dict[str, str]]


def newest(prefix: str, contender: str | None = None) -> tuple[str, Rows]:
    """The last file of a kind, by the date in its name; if asked for, the last with a contender."""
    for path in sorted(RESULTS.glob(f"{prefix}-2*.csv"), reverse=True):
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        if contender is None or any(row["contender"] == contender for row in rows):
            return path.name, rows
    sys.exit(f"no benchmarks/results/{prefix}-*.csv; run the benchmark first, see its README")


def find(rows: Rows, column: str, **wanted: object) -> float | None:
    """The figure in a column of the one row that has these entries."""
    for row in rows:
        if all(row[key] == str(value) for key, value in wanted.items()):
            return float(row[column]) if row[column] else None
    return None


def times(value: float | None) -> str:
    """A ratio to two significant digits above 10, with its sign."""
    return "–" if value is None else f"{short(value) if value < 10 else f'{value:.0f}'}×"


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None


def line(name: str, cell: Callable[[int], str]) -> list[str]:
    return [name, *(cell(n) for n in SIZES)]


def cpu() -> str:
    """Times of ours and ratios to the peers, one thread."""
    name, rows = newest("cpu")

    def ms(operation: str, contender: str, n: int) -> float | None:
        return find(rows, "cpu_ms", operation=operation, contender=contender, n=n, threads=1)

    both, ours = "forward+backward", "treelax native softmax"
    marginals = "treelax native entropy"

    def against(operation: str, peer: str, own: str) -> Callable[[int], str]:
        return lambda n: times(ratio(ms(operation, peer, n), ms(operation, own, n)))

    lines = [
        line("soft tree, forward + backward, ms", lambda n: short(ms(both, ours, n))),
        line("… torch-struct 0.5 takes for marginals", against(both, "torch-struct", ours)),
        line("… supar 1.1.4 takes for marginals", against(both, "supar", ours)),
        line("… our vectorised PyTorch takes", against(both, "treelax diagonal softmax", ours)),
        line("marginals, forward + backward, ms", lambda n: short(ms(both, marginals, n))),
        line("… torch-struct takes", against(both, "torch-struct", marginals)),
        line("… supar takes", against(both, "supar", marginals)),
        line("best tree, ms", lambda n: short(ms("best tree", "treelax native", n))),
        line("… torch-struct takes", against("best tree", "torch-struct", "treelax native")),
        line("… supar takes", against("best tree", "supar", "treelax native")),
    ]
    peak = [
        find(rows, "peak_mb", operation=both, contender=who, n=80, threads=1)
        for who in (ours, "torch-struct", "supar")
    ]
    row = rows[0]
    machine = row["machine"].split(", OMP")[0]
    header = ["batch of 64, float32, one CPU thread", *(f"n = {n}" for n in SIZES)]
    return "\n\n".join(
        [
            table(header, lines),
            f"Peak memory at n = 80, forward + backward: {peak[0]:.0f} MB, torch-struct "
            f"{peak[1]:.0f} MB, supar {peak[2]:.0f} MB. Medians of CPU time in one process, results "
            "compared first. The first lines compare our relaxed tree with the peers' marginals, the "
            f"next ones marginals with marginals. `make bench` on {machine}; torch {row['torch']}; "
            f"[{name}](benchmarks/results/{name}).",
        ]
    )


# operations on the GPU, with the names of their rows
CUDA = {
    "soft tree, forward": ("forward", "treelax triton softmax"),
    "soft tree, forward + backward": ("forward+backward", "treelax triton softmax"),
    "best tree": ("best tree", "treelax triton"),
    "non-projective marginals, forward + backward": (
        "non-projective marginals+backward",
        "treelax triton entropy",
    ),
    "non-projective best tree": ("non-projective best tree", "treelax triton"),
    "binary marginals, forward + backward": ("binary marginals+backward", "treelax triton entropy"),
    "binary best tree": ("binary best tree", "treelax triton"),
}


def micros(rows: Rows, operation: str, contender: str, column: str) -> Callable[[int], str]:
    """Microseconds of an operation on the GPU, by the number of words."""

    def cell(n: int) -> str:
        found = find(rows, column, operation=operation, contender=contender, n=n)
        return short(None if found is None else found * 1e3)

    return cell


def soft_trees_on_gpu() -> str:
    """Soft trees with either backend by batch and length, ordinary calls, and a BiLSTM."""
    name, rows = newest("gpu-calls")
    shapes = [(r["batch"], r["n"]) for r in rows if r["kind"] == "device" and r["what"] == "cuda"]

    def cells(batch: str, n: str) -> list[str]:
        found = [
            find(rows, "microseconds", kind=kind, what=what, batch=batch, n=n)
            for kind, what in (("call", "soft_tree"), ("device", "cuda"), ("device", "triton"))
        ]
        return [batch, n, *map(short, found)]

    def device(row: dict[str, str], what: str) -> str:
        same = {"batch": row["batch"], "n": row["n"]}
        return short(find(rows, "microseconds", kind="device", what=what, **same))

    lstm = [
        [row["batch"], row["n"], *(device(row, f"BiLSTM, {whose}") for whose in ("ours", "cuDNN"))]
        for row in rows
        if row["what"] == "BiLSTM, ours"
    ]
    header = ["sentences", "words", "ordinary call, µs", "as a graph, µs", "… Triton, µs"]
    calls = [
        [row["what"], row["batch"], row["n"], short(float(row["microseconds"]))]
        for row in rows
        if row["kind"] == "call"
    ]
    return "\n\n".join(
        [
            "Softmax relaxation, forward + backward, float32, with the CUDA kernels; as a graph with "
            "Triton's too:",
            table(header, [cells(*shape) for shape in shapes]),
            "Ways of calling, forward + backward unless the row says otherwise:",
            table(["call", "sentences", "words", "µs"], calls),
            "`tx.nn.BiLSTM(100, 100)`, two stacks, forward + backward, as a graph, with matrix products "
            "in TF32:",
            table(["sentences", "words", "our kernel, µs", "cuDNN, µs"], lstm),
            "Medians. A call includes its share of Python and of the launches, and validates unless it "
            "says otherwise; graphs do not. `python benchmarks/gpu_calls.py --compile` at commit "
            f"{rows[0]['commit']} on {rows[0]['machine']}; torch {rows[0]['torch']}; "
            f"[{name}](benchmarks/results/{name}).",
        ]
    )


def cuda() -> str:
    """Times of Triton's kernels, as one calls them and replayed as graphs, and of torch-struct."""
    name, rows = newest("cuda")
    lines = [
        line(label, micros(rows, *CUDA[operation], column))
        for operation in CUDA
        for label, column in ((f"{operation}, µs", "wall_ms"), ("… as a graph, µs", "device_ms"))
    ]
    row = rows[0]
    header = ["batch of 128, float32, GPU, Triton", *(f"n = {n}" for n in SIZES)]
    return "\n\n".join(
        [
            table(header, lines),
            "Medians. The first line of each pair is the wall time of ordinary calls, most of it "
            "Python's; the second is the device time of a CUDA graph's replay. "
            f"`python benchmarks/run.py --device cuda` on {row['machine']}; torch "
            f"{row['torch']}; [{name}](benchmarks/results/{name}). {cuda_peer()}",
        ]
    )


def cuda_peer() -> str:
    """Ordinary calls of the one peer that was measured on the GPU."""
    name, rows = newest("cuda", "torch-struct")
    operation, ours = CUDA["soft tree, forward + backward"]
    slower = [
        ratio(
            find(rows, "wall_ms", operation=operation, contender="torch-struct", n=n),
            find(rows, "wall_ms", operation=operation, contender=ours, n=n),
        )
        or 0
        for n in SIZES
    ]
    return (
        f"Ordinary calls of torch-struct took {min(slower):.0f} to {max(slower):.0f} times as long "
        f"as our Triton kernels ([an older record](benchmarks/results/{name}))."
    )


def accuracy() -> str:
    """Largest errors of float32."""
    name, rows = newest("accuracy-cpu")
    lines = [
        [f"{relaxation}, scores of scale {scale}"]
        + [
            f"{find(rows, column, backend='native', relaxation=relaxation, n=80, scale=scale):.0e}"
            for column in ("tree_error", "gradient_error")
        ]
        for relaxation in ("softmax", "entropy")
        for scale in (1, 10)
    ]
    worst = max(
        float(row["sum_error"]) for row in rows if row["scale"] == "100" and row["sum_error"]
    )
    seconds = next(float(row["import_seconds"]) for row in rows if row["import_seconds"])
    return "\n\n".join(
        [
            table(["n = 80, float32 against float64 loops", "soft tree", "its gradient"], lines),
            f"Largest error over all arcs of {rows[0]['sentences']} sentences; the gradient's relative "
            "to its largest entry. At scale 100 (64 sentences) "
            f"every word's column sums to 1 within {worst:.0e}. `import treelax` takes "
            f"{short(seconds)} s beyond `import torch`. `python benchmarks/accuracy.py --sentences "
            f"{rows[0]['sentences']}`; "
            f"[{name}](benchmarks/results/{name}).",
        ]
    )


def listops() -> str:
    """The paper's table 1 and ours, from the runs on record."""
    runs = listops_runs()
    lines = []
    for preset, paper in PAPER.items():
        own = [run for run in runs if run["preset"] == preset]
        if own:
            columns = (as_trained(preset), *OWN, "exact_trees")
            figures = [spread([float(run[column]) for run in own]) for column in columns]
            turn = turns([int(run["turn"]) if run["turn"] else None for run in own])
            lines.append([LABELS[preset], paper or "–", *figures, turn, str(len(own))])
    header = [
        "ListOps, the paper's recipe, test, %",
        "paper acc / att",
        "accuracy as trained",
        "discrete trees",
        "attachment",
        "exact trees",
        "turn, epoch",
        "seeds",
    ]
    [longest] = {run["max_length"] for run in runs}
    there = {run["preset"] for run in runs}
    missing = [LABELS[preset] for preset in PAPER if preset not in there]
    machines = " and ".join(sorted({run["device"] for run in runs}, reverse=True))
    seeds = max(int(run["seed"]) for run in runs) + 1
    return "\n\n".join(
        [
            table(header, lines),
            f"Expressions of at most {longest} tokens, generated from the original distribution "
            "(90,000 for training, 10,000 for test); accuracy of operators' tags with the trees of "
            "training (soft ones unless training is straight-through) and with discrete trees; "
            "attachment and exact trees without the arc from the root; mean ± standard deviation over "
            f"seeds. The turn is the first epoch with a dev accuracy of {TURN:.0f} with discrete trees. "
            f"`treelax table listops --seeds {seeds}` on {machines}; "
            "[every run](results/listops/runs.csv).",
            against_paper(runs),
            *([f"Not run yet: {'; '.join(missing)}."] if missing else []),
        ]
    )


def against_paper(runs: Rows) -> str:
    """How far off each cell is."""
    points = []
    for preset, paper in PAPER.items():
        own = [run for run in runs if run["preset"] == preset]
        if paper and own:
            columns = (as_trained(preset), OWN[1])
            apart = [
                mean(float(run[column]) for run in own) - float(figure)
                for column, figure in zip(columns, paper.split(" / "), strict=True)
            ]
            both = " / ".join(f"{value:+.1f}" for value in apart).replace("-", "−")
            points.append(f"{LABELS[preset]}: {both}")
    return (
        f"Ours minus the paper's in points, accuracy as trained / attachment: {'; '.join(points)}."
    )


def listops_kinds() -> str:
    """Which tokens of table 1's four cells have the right head."""
    runs = listops_runs()
    lines = []
    for preset in ("paper-mc", "paper-zero", "paper-mc-st", "paper-zero-st"):
        own = [run for run in runs if run["preset"] == preset]
        found = [[float(run[kind]) for run in own if run.get(kind)] for kind in KINDS]
        lines.append([LABELS[preset], *(spread(values) if values else "–" for values in found)])
    header = ["attachment, test, %", *(f"{kind}s" for kind in KINDS.values())]
    return f"{table(header, lines)}\n\nThe same runs."


def balanced() -> str:
    """Our own recipe on longer expressions."""
    runs = listops_runs("longer")
    lines = []
    for preset, label in {
        "balanced-mc": "MC, forward relaxed",
        "balanced-zero": "G = 0, forward relaxed",
        "balanced-mc-st": "MC, straight-through",
        "balanced-zero-st": "G = 0, straight-through",
        "paper-mc": "the paper's recipe, MC, forward relaxed",
    }.items():
        own = [run for run in runs if run["preset"] == preset]
        figures = [
            spread([float(run[column]) for run in own])
            for column in ("operator_accuracy", "attachment", "exact_trees")
        ]
        lines.append([label, *figures, str(len(own))])
    [longest] = {run["max_length"] for run in runs}
    preset = [run for run in listops_runs("settings") if run["change"] == f"length-{longest}"]
    accuracy, attachment = both_spreads(preset)
    header = [f"balanced recipe, at most {longest} tokens, test, %"]
    return "\n\n".join(
        [
            table([*header, "accuracy", "attachment", "exact trees", "seeds"], lines),
            "The recipe adds four things to the paper's ([which and why]"
            "(src/treelax/lab/listops/README.md)). In the last line the plateau rule reads discrete "
            "trees and compares with the best epoch so far (`train.dev_trees=discrete`, "
            "`train.improve_on=best`); with the preset's own rule and arcs from the root it has "
            f"accuracy {accuracy} and attachment {attachment} ({len(preset)} seeds; "
            "[runs](results/listops/settings/runs.csv)). [All rows](results/listops/longer/table.md), "
            "[every run](results/listops/longer/runs.csv).",
            small(),
            paulus(),
            alone(),
            any_length(),
        ]
    )


def settings() -> str:
    """What changes if one setting does, as far as it has been run."""
    from benchmarks.listops_settings import CHANGES, SEEDS

    runs = listops_runs("settings")
    found: dict[str, Rows] = {}
    for base, folder, recipe in (
        ("paper-mc", "root-arcs", "the paper's recipe with root arcs, at most 50 tokens"),
        ("balanced-mc", "longer", "the balanced recipe, at most 100 tokens"),
    ):
        found[recipe] = [run for run in listops_runs(folder) if run["preset"] == base][:SEEDS]
        for change, (preset, _, text) in CHANGES.items():
            if preset == base:
                found[f"… {text}"] = [run for run in runs if run["change"] == change]
    lines = [
        [text, *both_spreads(own), turns([int(r["turn"]) if r["turn"] else None for r in own])]
        for text, own in found.items()
        if own
    ]
    missing = [CHANGES[c][2] for c in CHANGES if not any(run["change"] == c for run in runs)]
    waiting = f" Not run yet: {'; '.join(missing)}." if missing else ""
    header = ["MC, forward relaxed, test, %", "accuracy", "attachment", "turn, epoch"]
    return "\n\n".join(
        [
            table(header, lines),
            f"{SEEDS} seeds each. `python benchmarks/listops_settings.py --device cuda`; "
            "[every run](results/listops/settings/runs.csv), those of the two recipes themselves "
            "[here](results/listops/root-arcs/runs.csv) and "
            f"[here](results/listops/longer/runs.csv).{waiting}",
        ]
    )


def listops_runs(folder: str = "", name: str = "runs.csv") -> Rows:
    """All runs of a table."""
    with (LISTOPS / folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def both_spreads(runs: Rows) -> tuple[str, str]:
    """Accuracy and attachment over seeds."""
    accuracy, attachment = (spread([float(run[column]) for run in runs]) for column in OWN)
    return accuracy, attachment


def paulus() -> str:
    """Ours beside the best published figures on the data of Paulus et al."""
    runs = listops_runs("paulus")
    accuracy, attachment = both_spreads(runs)
    return (
        "On the data of Paulus et al. (2020; 10 to 50 tokens, no SM, depth at most 5) the balanced "
        f"recipe has accuracy {accuracy} and attachment {attachment} ({len(runs)} seeds; "
        "[runs](results/listops/paulus/runs.csv)). The best we know of are single runs, in "
        "the metrics files of the repository of Struminsky et al. (2021): accuracy 97.3 with edge "
        "precision 78.5, and 96.8 with 80.2; their accuracy is, as we read it, that of the "
        "expression's value, ours that of operators' tags, so only the trees compare."
    )


def alone() -> str:
    """How long one run takes on a GPU of its own."""
    [run] = listops_runs("alone")
    return (
        f"One run of {int(run['epochs']) * 100:,} updates alone on the {run['device']} trains for "
        f"{float(run['seconds']):.0f} s ([run](results/listops/alone/runs.csv))."
    )


def any_length() -> str:
    """The recipe for expressions of any length, and what it would be with the usual clip."""
    runs, clipped = listops_runs("long"), listops_runs("long", "clip-5.csv")
    config, usual = listops_preset("long"), TrainConfig()
    accuracy, attachment = both_spreads(runs)
    other = [
        f"{float(run['operator_accuracy']):.1f} / {float(run['attachment']):.1f}" for run in clipped
    ]
    seconds = [float(run["seconds"]) for run in runs]
    files = [LISTOPS / "long" / f"test-{run['seed']}.json" for run in runs]
    lengths = [json.loads(file.read_text(encoding="utf-8"))["test"]["by_length"] for file in files]
    longest = [f"{by_length[-1]['attachment']:.1f}" for by_length in lengths]
    return (
        "On expressions **of any length**, up to a thousand tokens, the preset `long` has accuracy "
        f"{accuracy} and attachment {attachment} ({len(runs)} seeds, {config.data.test:,} test "
        f"expressions; [runs](results/listops/long/runs.csv)); on the {lengths[0][-1]['sentences']} of "
        f"more than {lengths[0][-2]['longest']} tokens attachment is {' and '.join(longest)}. It trains "
        f"for {config.train.epochs * config.train.updates:,} updates, which took "
        f"{max(seconds) / 60:.0f} minutes on an {runs[0]['device']} with other runs beside. It begins "
        "with at most 100 tokens and doubles the bound every "
        f"{config.train.short_epochs} epochs; from then on it draws tokens, not expressions, equally "
        f"often. The temperature is {config.model.temperature:g}, gradients are clipped to a norm of "
        f"{config.train.clip:g} and weights are averaged. With a clip of {usual.clip:g} and no average, "
        f"the same seeds have {' and '.join(other)} ([runs](results/listops/long/clip-5.csv)). "
        "`treelax table listops --rows long --seeds 2`; for the latter `--set train.clip=5 --set "
        "train.average=0`."
    )


def small() -> str:
    """What ``make listops`` ends with."""
    runs = listops_runs("small")
    accuracy, attachment = both_spreads(runs)
    minutes = [float(run["seconds"]) / 60 for run in runs]
    return (
        f"`make listops` learns expressions of at most {runs[0]['max_length']} tokens in minutes on "
        f"two CPU cores. The {len(runs)} [runs](results/listops/small/runs.csv) on record trained for "
        f"{min(minutes):.1f} to {max(minutes):.1f} minutes, set-up not counted, and have accuracy "
        f"{accuracy} and attachment {attachment} on 2,000 test expressions; a busier machine takes "
        "longer."
    )


RECORD_SECTIONS: dict[str, Callable[[], str]] = {
    "listops": listops,
    "listops-kinds": listops_kinds,
    "balanced": balanced,
    "settings": settings,
    "small": small,
    "cpu": cpu,
    "soft-trees-on-gpu": soft_trees_on_gpu,
    "cuda": cuda,
    "accuracy": accuracy,
}
