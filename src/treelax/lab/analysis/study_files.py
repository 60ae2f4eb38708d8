"""A study as CSV files, one for each table, complete where the screen shows a part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from treelax.lab.analysis.agreement import Agreement
from treelax.lab.analysis.grammar import DISTRIBUTIONS
from treelax.lab.analysis.roles import Role
from treelax.lab.analysis.study import Study, label_figures
from treelax.lab.analysis.tables import to_csv, write_files

Row = dict[str, Any]


def csv_files(study: Study) -> dict[str, str]:
    """The texts of all CSV files of a study, by their names."""
    tables: dict[str, list[Row]] = {
        "grammar.csv": [
            {"kind": kind, "trees": name}
            | {key: value for key, value in asdict(grammar).items() if key not in DISTRIBUTIONS}
            for kind, name, grammar in study.all_grammars()
        ],
        "distributions.csv": list(_distributions(study)),
        "words.csv": list(_roles("word", study.words)),
        "tags.csv": list(_roles("tag", study.tags or {})),
        "pairs.csv": [asdict(pair) for pair in study.pairs],
        "baselines.csv": [
            {"run": run, "baseline": name} | _figures(agreement, "uas", "uuas", "exact_trees")
            for run, all_of_it in study.baselines.items()
            for name, agreement in all_of_it.items()
        ],
        "treebank.csv": [
            {"kind": kind, "trees": name} | score.figures()
            for kind, name, score in study.all_scores()
        ],
        "treebank_tags.csv": [
            {"kind": kind, "trees": name, "tag": tag} | _figures(one, "words", "uas", "uuas")
            for kind, name, score in study.all_scores()
            for tag, one in (score.by_tag or {}).items()
        ],
        "entropy.csv": [{"run": run} | asdict(e) for run, e in study.entropies.items()],
        "sentences.csv": list(_sentences(study)),
        "labels.csv": [{"run": run} | label_figures(f) for run, f in study.labels.items()],
    }
    # six digits, since entropies may be small
    return {name: to_csv(list(rows[0]), rows, ".6g") for name, rows in tables.items() if rows}


def write_csv_files(study: Study, folder: Path) -> None:
    """Write all CSV files of a study, each atomically."""
    # a lone surrogate, which JSON allows, is written as in JSON
    escaped = {
        name: text.encode(errors="backslashreplace").decode()
        for name, text in csv_files(study).items()
    }
    write_files(folder, escaped)


def _figures(agreement: Agreement, *names: str) -> Row:
    return {name: getattr(agreement, name) for name in names}


def _distributions(study: Study) -> Iterator[Row]:
    for kind, name, grammar in study.all_grammars():
        for what in DISTRIBUTIONS:
            counts: Mapping[int, int] = getattr(grammar, what)
            total = sum(counts.values())
            for value, count in counts.items():
                row = {"kind": kind, "trees": name, "what": what, "value": value, "count": count}
                yield row | {"share": 100 * count / total}


def _roles(unit: str, all_of_it: Mapping[str, Sequence[Role]]) -> Iterator[Row]:
    for run, roles in all_of_it.items():
        for role in roles:
            row = asdict(role)
            yield {"run": run, unit: row.pop("name")} | row


def _sentences(study: Study) -> Iterator[Row]:
    gold = study.corpus.gold
    for run in study.runs:
        for i, heads in enumerate(run.trees):
            entropy = None if run.entropies is None else run.entropies[i]
            yield {
                "run": run.name,
                "sentence": i + 1,
                "words": len(heads),
                "roots": heads.count(0),
                "right_heads": None if gold is None else sum(map(int.__eq__, heads, gold[i])),
                "entropy": entropy and entropy.entropy,
                "entropy_per_word": entropy and entropy.entropy / entropy.vertices,
                "best_arcs": entropy and entropy.best_arcs,
            }
