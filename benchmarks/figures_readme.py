"""The short tables of the README, of the same records as the long ones; see `benchmarks.figures`."""

from __future__ import annotations

from collections.abc import Callable

import treelax
from benchmarks.figures_records import (
    OWN,
    SIZES,
    Rows,
    cuda_peer,
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
from treelax.lab.listops.table import LABELS, PAPER, as_trained

LONGER = {"balanced-mc": "our recipe", "paper-mc": "the paper's recipe"}


def headline() -> str:
    """What one should know at first sight, a line each."""
    _, rows = newest("cpu")
    both, ours = "forward+backward", "treelax native softmax"
    marginals = "treelax native entropy"

    def figure(column: str, contender: str, n: int) -> float | None:
        return find(rows, column, operation=both, contender=contender, n=n, threads=1)

    def span(peer: str, own: str) -> str:
        ratios = [ratio(figure("cpu_ms", peer, n), figure("cpu_ms", own, n)) or 0 for n in SIZES]
        return f"{min(ratios):.0f} to {max(ratios):.0f}"

    memory = [f"{figure('peak_mb', who, 80):.0f}" for who in (ours, "torch-struct", "supar")]
    longer = [run for run in listops_runs("longer") if run["preset"] == "balanced-mc"]
    attachment, any_length = (
        spread([float(run["attachment"]) for run in runs])
        for runs in (longer, listops_runs("long"))
    )
    about = treelax.load("english").about
    english = about["scores"]["test"]
    return "\n".join(
        [
            f"- **It finds the trees.** ListOps expressions of up to {longer[0]['max_length']} tokens, "
            f"learned from tags alone: {attachment} % of the heads right ({len(longer)} seeds); of any "
            f"length {any_length} ({len(listops_runs('long'))} seeds).",
            "- **It is fast.** A relaxed tree and its gradient: "
            f"{span('torch-struct', ours)} times as fast as marginals in torch-struct and "
            f"{span('supar', ours)} times as fast as in supar on one CPU thread (our own marginals: "
            f"{span('torch-struct', marginals)} and {span('supar', marginals)} times), in {memory[0]} "
            f"MB where they take {memory[1]} and {memory[2]} (80 words, batch of 64).",
            f"- **An English parser is included.** One file, UAS {english['uas']:.1f} and LAS "
            f"{english['las']:.1f} on the test set of {about['treebank']}, with gold tokenisation.",
        ]
    )


def paper() -> str:
    """Table 1 by the paper's recipe, then longer expressions."""
    runs, longer = listops_runs(), listops_runs("longer")

    def cells(own: Rows) -> list[str]:
        columns = (as_trained(own[0]["preset"]), *OWN)
        return [*(spread([float(run[column]) for run in own]) for column in columns), str(len(own))]

    lines = [
        [LABELS[preset], PAPER[preset] or "–", *cells([r for r in runs if r["preset"] == preset])]
        for preset in ("paper-mc", "paper-zero", "paper-mc-st", "paper-zero-st")
    ]
    for preset, label in LONGER.items():
        own = [run for run in longer if run["preset"] == preset]
        lines.append([f"up to {own[0]['max_length']} tokens, {label}", "–", *cells(own)])
    lines.append(["any length, our recipe for it", "–", *cells(listops_runs("long"))])
    header = ["ListOps, test, %", "paper acc / att", "accuracy as trained", "discrete trees"]
    header += ["attachment", "seeds"]
    return "\n\n".join(
        [
            table(header, lines),
            "Accuracy of the tags with the trees of training (soft ones unless training is "
            "straight-through) and with discrete trees, attachment of discrete trees; mean ± standard "
            f"deviation over seeds. The first four rows have the paper's recipe, up to "
            f"{runs[0]['max_length']} tokens and no arcs from the root, which attachment leaves out; "
            "the last three are MC, forward relaxed, with these arcs. `treelax table listops --seeds "
            f"{max(int(run['seed']) for run in runs) + 1}`, the last row with `--rows long --seeds 2`; "
            "[all rows and every run](docs/listops.md).",
        ]
    )


def speed() -> str:
    """The soft tree and its gradient on CPU and GPU, as one calls them."""
    cpu_name, rows = newest("cpu")
    gpu_name, gpu = newest("gpu-calls")
    both, ours = "forward+backward", "treelax native softmax"
    other, fallback = "non-projective marginals+backward", "treelax diagonal entropy"

    def ms(contender: str, n: int, operation: str = both) -> float | None:
        return find(rows, "cpu_ms", operation=operation, contender=contender, n=n, threads=1)

    def against(peer: str) -> Callable[[int], str]:
        return lambda n: times(ratio(ms(peer, n), ms(ours, n)))

    def on_gpu(**wanted: str) -> Callable[[int], str]:
        return lambda n: short(find(gpu, "microseconds", batch=128, n=n, **wanted))

    lines = [
        line("one CPU thread, batch of 64, ms", lambda n: short(ms(ours, n))),
        line("… marginals of torch-struct 0.5 take", against("torch-struct")),
        line("… marginals of supar 1.1.4 take", against("supar")),
        line(
            "non-projective marginals without our kernel: torch-struct takes",
            lambda n: times(ratio(ms("torch-struct", n, other), ms(fallback, n, other))),
        ),
        line("GPU, batch of 128, ordinary calls, µs", on_gpu(kind="call", what="soft_tree")),
        line("… replayed as a CUDA graph, µs", on_gpu(kind="device", what="cuda")),
    ]
    header = ["soft tree, forward + backward, float32", *(f"n = {n}" for n in SIZES)]
    return "\n\n".join(
        [
            table(header, lines),
            "Medians for sentences of n words. The peers compute marginals, which cost us about "
            "as much as our relaxed trees; [where peers are faster]"
            "(docs/benchmarks.md#where-peers-are-faster). `make bench` on "
            f"{rows[0]['machine'].split(', OMP')[0]} ([record](benchmarks/results/{cpu_name})); "
            "`python benchmarks/gpu_calls.py --compile` on an "
            f"{gpu[0]['machine'].split('cores, ')[1].split(', ')[1]} "
            f"([record](benchmarks/results/{gpu_name})). {cuda_peer()} "
            "[All operations, memory, accuracy](docs/benchmarks.md).",
        ]
    )


README_SECTIONS: dict[str, Callable[[], str]] = {
    "headline": headline,
    "paper": paper,
    "speed": speed,
}
