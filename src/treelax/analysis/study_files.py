"""A study as CSV files, one for each table, complete where the screen shows a part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from treelax.analysis.agreement import Agreement
from treelax.analysis.grammar import DISTRIBUTIONS, Grammar
from treelax.analysis.roles import Role
from treelax.analysis.study import GOLD, Study, TreebankScores
from treelax.analysis.tables import to_csv
from treelax.errors import InputError
from treelax.files import atomic_write

Row = dict[str, Any]


def csv_files(study: Study) -> dict[str, str]:
    """The texts of all CSV files of a study.

    - ``grammar.csv``: the statistics of the trees of each run, each baseline and the treebank;
    - ``distributions.csv``: arc lengths, depths and the like, a line for each value;
    - ``words.csv``, ``tags.csv``: the parts that words and tags play, a line for each and each run;
    - ``pairs.csv``: agreement of every two runs; ``baselines.csv``: of runs with baselines;
    - ``treebank.csv``, ``treebank_tags.csv``: agreement with a treebank;
    - ``entropy.csv``: means of each run; ``sentences.csv``: each sentence of each run;
    - ``labels.csv``: labels with discrete and with soft trees.
    """
    tables: dict[str, list[Row]] = {
        "grammar.csv": [
            {"kind": kind, "trees": name} | _scalars(own) for kind, name, own in _grammars(study)
        ],
        "distributions.csv": list(_distributions(study)),
        "words.csv": list(_roles("word", study.words)),
        "tags.csv": list(_roles("tag", study.tags or {})),
        "pairs.csv": [asdict(pair) for pair in study.pairs],
        "baselines.csv": [
            {"run": run, "baseline": name} | _figures(own, "uas", "uuas", "exact_trees")
            for run, all_of_it in study.baselines.items()
            for name, own in all_of_it.items()
        ],
        "treebank.csv": list(_treebank(study)),
        "treebank_tags.csv": list(_treebank_tags(study)),
        "entropy.csv": [{"run": name} | asdict(own) for name, own in study.entropies.items()],
        "sentences.csv": list(_sentences(study)),
        "labels.csv": [
            {"run": run.name} | asdict(run.labels) | {"gap": run.labels.gap}
            for run in study.runs
            if run.labels is not None
        ],
    }
    return {
        name: to_csv(list(rows[0]), map(_written, rows)) for name, rows in tables.items() if rows
    }


def write_csv_files(study: Study, folder: Path) -> list[Path]:
    """Write all CSV files of a study, each whole or not at all."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; expected a folder: give another --out")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in csv_files(study).items():
        with atomic_write(folder / name, "w") as out:
            # half a character, which JSON can write, is then as JSON writes it
            out.write(text.encode(errors="backslashreplace").decode())
        written.append(folder / name)
    return written


def _written(row: Row) -> Row:
    """A row with six digits, for entropies may be small."""
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}


def _grammars(study: Study) -> Iterator[tuple[str, str, Grammar]]:
    for name, own in study.grammars.items():
        yield "run", name, own
    for name, own in study.reference_grammars.items():
        yield "gold" if name == GOLD else "baseline", name, own


def _figures(own: Agreement | None, *names: str) -> Row:
    return {name: getattr(own, name, None) for name in names}


def _scalars(own: Grammar) -> Row:
    return {key: value for key, value in asdict(own).items() if key not in DISTRIBUTIONS}


def _distributions(study: Study) -> Iterator[Row]:
    for kind, name, own in _grammars(study):
        for what in DISTRIBUTIONS:
            counts: Mapping[int, int] = getattr(own, what)
            total = sum(counts.values())
            for value, count in counts.items():
                row = {"kind": kind, "trees": name, "what": what, "value": value, "count": count}
                yield row | {"share": 100 * count / total}


def _roles(unit: str, all_of_it: Mapping[str, Sequence[Role]]) -> Iterator[Row]:
    for run, own in all_of_it.items():
        for role in own:
            row = asdict(role)
            row = {"run": run, unit: row.pop("name")} | row
            yield row | {"leaves": role.leaves, "mean_modifiers": role.mean_modifiers}


def _scored(study: Study) -> Iterator[tuple[str, str, TreebankScores]]:
    for kind, scores in (("run", study.treebank), ("baseline", study.treebank_baselines)):
        for name, own in (scores or {}).items():
            yield kind, name, own


def _treebank(study: Study) -> Iterator[Row]:
    for kind, name, own in _scored(study):
        row = {"kind": kind, "trees": name}
        row |= _figures(own.all, "words", "uas", "uuas", "exact_trees")
        plain = _figures(own.plain, "words", "uas", "uuas")
        yield row | {f"{key}_without_punctuation": value for key, value in plain.items()}


def _treebank_tags(study: Study) -> Iterator[Row]:
    for kind, name, own in _scored(study):
        for tag, one in (own.by_tag or {}).items():
            yield {"kind": kind, "trees": name, "tag": tag} | _figures(one, "words", "uas", "uuas")


def _sentences(study: Study) -> Iterator[Row]:
    gold = study.corpus.gold
    for run in study.runs:
        for i, heads in enumerate(run.trees):
            own = None if run.entropies is None else run.entropies[i]
            yield {
                "run": run.name,
                "sentence": i + 1,
                "words": len(heads),
                "roots": sum(head == 0 for head in heads),
                "right_heads": None if gold is None else sum(map(int.__eq__, heads, gold[i])),
                "entropy": None if own is None else own.entropy,
                "entropy_per_word": None if own is None else own.per_word,
                "best_arcs": None if own is None else own.best_arcs,
            }
