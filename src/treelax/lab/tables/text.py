"""The paper's tables 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from treelax.apps.data.text.readers_corpora import CORPORA
from treelax.apps.tasks.sentences.origins import SPLITS
from treelax.apps.tasks.text.config import SPLIT, TextConfig
from treelax.apps.tasks.text.presets import PRESETS, TUNED
from treelax.lab.tables.paper import Column, PaperTable, Record


@dataclass(frozen=True)
class TextTable(PaperTable):
    """A table of accuracies."""

    dev: str = "dev"  # in headings
    test: str = "test"

    keys = (
        *("preset", "seed", "dev_accuracy", "dev_soft_accuracy"),
        *("test_accuracy", "test_soft_accuracy", "dev_examples", "test_examples"),
        *("training_examples", "mixed_examples", "parameters"),
        *("best_epoch", "epochs", "updates", "seconds", "device"),
    )
    named_after = ("model.trees", "model.gcn_layers")
    measured, counted = ("accuracy", "soft_accuracy"), "examples"

    @property
    def tuned(self) -> TextTable:
        """The same rows, trained by our recipe instead of the paper's."""
        figures = {
            name.replace("-", f"-{TUNED}-", 1): paper for name, paper in self.figures.items()
        }
        labels = {name: label(name) for name in figures}
        return replace(self, title=f"{self.title}, tuned", figures=figures, labels=labels)

    def adapted(self, config: TextConfig) -> TextTable:
        """The table for models or classes that are not the paper's: without its figures."""
        preset = PRESETS[config.preset][0]
        title, labels = self.title, self.labels
        if config.data.classes != preset.data.classes:
            title = title.replace("binary", "five classes")
        if config.model.encoder != preset.model.encoder:
            title = f"{title}, encoder {config.model.encoder}"
            labels = {name: text.removeprefix("BiLSTM ") for name, text in labels.items()}
        if title == self.title:
            return self
        return replace(self, title=title, labels=labels, figures=dict.fromkeys(self.figures))

    def row_config(self, config: TextConfig) -> TextConfig:
        """Without given trees, where the model takes none: then it is the same run."""
        if config.model.trees == "given" or config.data.trees is None:
            return config
        return replace(config, data=replace(config.data, trees=None))

    def about(self, runs: Sequence[tuple[Any, Record]]) -> str:
        """The amount of data, the word vectors, and what the figures are."""
        first = runs[0][0]
        data = "; ".join(dict.fromkeys(amount(config, result) for config, result in runs))
        sizes = "; ".join(dict.fromkeys(self._sizes(result) for _, result in runs))
        files = dict.fromkeys(c.data.trees for c, _ in runs if c.data.trees is not None)
        names = [PurePath(file).name.replace(SPLIT, split) for file in files for split in SPLITS]
        trees = f" Given trees are those of {', '.join(dict.fromkeys(names))}." if names else ""
        return (
            f"Trained on {data}, with {_vectors(first)}; {sizes}. Accuracy in percent, with discrete "
            f"trees and with soft ones; the best epoch is chosen by {self.dev} with discrete trees. "
            f"Mean ± standard deviation over seeds.{trees}"
        )

    def _sizes(self, result: Record) -> str:
        sizes = {
            name: f"{result['splits'][split]['examples']:,}"
            for split, name in (("dev", self.dev), ("test", self.test))
            if split in result["splits"]
        }
        (name, size), *others = sizes.items()
        return ", ".join([f"{name} has {size} examples", *(" ".join(pair) for pair in others)])


def label(preset: str) -> str:
    """What a preset is, without the name of its data."""
    text = PRESETS[preset][1] if preset in PRESETS else preset
    return text.partition(": ")[2] or text


def amount(config: TextConfig, result: Record) -> str:
    """How much training data a run had: 109,873 of the 549,367 training pairs of SNLI (20 %)."""
    mixed = result.get("mixed_examples", 0)
    count = result["training_examples"] - mixed
    data = config.data
    if data.format == "sst":
        text = _part(count, f"sst-{data.classes}", "training sentences of SST")
    elif data.format in CORPORA:
        text = _part(count, data.format, f"training pairs of {CORPORA[data.format].title}")
    else:
        text = f"{count:,} training examples"
    if not mixed:
        return text
    drawn = f", of which each epoch draws {100 * data.mix_share:g} %" if data.mix_share < 1 else ""
    return f"{text} and {_part(mixed, 'snli', 'training pairs of SNLI')}{drawn}"


def _vectors(config: TextConfig) -> str:
    data, model = config.data, config.model
    if model.pretrained is not None:
        return f"word vectors of the transformer {PurePath(model.pretrained).name}"
    if data.vectors is None:
        return "random word vectors"
    files = (PurePath(path).name for path in (data.vectors, *data.more_vectors))
    return f"word vectors of {' and '.join(files)}"


def _part(some: int, corpus: str, what: str) -> str:
    whole = CORPORA[corpus].official["train"]
    if some == whole:
        return f"all {whole:,} {what}"
    share = 100 * some / whole
    percent = f"{share:.{0 if share >= 10 else 1}f} %"
    if share < 0.1:
        percent = "less than 0.1 %"
    elif 99 < share < 100:
        percent = "more than 99 %"
    return f"{some:,} of the {whole:,} {what} ({percent})"


def _parameters(records: Sequence[Record]) -> str:
    sizes = sorted({r["parameters"] for r in records if r["parameters"] is not None})
    return ", ".join(f"{size:,}" for size in sizes) or "–"


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _table(
    title: str,
    rows: Mapping[str, str | None],
    paper: str,
    dev: str = "dev",
    test: str = "test",
) -> TextTable:
    columns: dict[str, Column] = {
        "parameters": _parameters,
        "seeds": lambda runs: str(len(runs)),
        dev: "dev_accuracy",
        test: "test_accuracy",
        f"{dev}, soft trees": "dev_soft_accuracy",
        f"{test}, soft trees": "test_soft_accuracy",
        f"every seed, {dev}/{test}": lambda runs: ", ".join(
            "/".join(_short(r[f"{split}_accuracy"]) for split in ("dev", "test")) for r in runs
        ),
    }
    labels = {name: label(name) for name in rows}
    return TextTable(title, rows, labels, columns, ("seeds", dev, test), paper, dev, test)


# accuracies as the paper prints them: tables 2, 3b, 3c and 3a
TABLES = {
    "snli": _table(
        "SNLI",
        {"snli-none": "84.4", "snli-intra": "83.8", "snli-tree-1": "85.2", "snli-tree-2": "86.2"},
        "paper, test",
    ),
    "multinli": _table(
        "MultiNLI",
        {"multinli-none": "68.1", "multinli-tree-1": "71.5", "multinli-tree-2": "73.0"},
        "paper, matched test",
        "matched dev",
        "mismatched dev",
    ),
    "ablation": _table(
        "MultiNLI: kinds of trees",
        {
            "multinli-none": "68.5 / 68.9",
            "multinli-intra": "67.9 / 68.4",
            "multinli-chain-1": "71.2 / 71.8",
            "multinli-chain-2": "72.3 / 71.1",
            "multinli-heads-1": "69.0 / 69.4",
            "multinli-heads-2": "68.7 / 69.6",
            "multinli-tree-1": "71.9 / 71.7",
            "multinli-tree-2": "73.2 / 72.9",
        },
        "paper, matched / mismatched dev",
        "matched dev",
        "mismatched dev",
    ),
    "sst": _table(
        "Sentiment of the Stanford Sentiment Treebank, binary",
        {
            **dict.fromkeys(("sst-none", "sst-chain", "sst-heads", "sst-nonprojective")),
            **{"sst-given": "83.8", "sst-tree": "84.6"},
        },
        "paper, test",
    ),
}
