"""The paper's tables 2 and 3 with our runs beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from treelax.analysis.tables import spread
from treelax.data.text.readers_corpora import CORPORA
from treelax.tasks.text.config import TextConfig
from treelax.tasks.text.presets import PRESETS, TUNED

COLUMNS = (
    "preset",
    "seed",
    "dev_accuracy",
    "dev_soft_accuracy",
    "test_accuracy",
    "test_soft_accuracy",
    "dev_examples",
    "test_examples",
    "training_examples",
    "mixed_examples",
    "parameters",
    "best_epoch",
    "epochs",
    "updates",
    "seconds",
    "device",
)


@dataclass(frozen=True)
class TextTable:
    """A table of the paper.

    Attributes:
        title: what it shows.
        family: the presets' first word, which names the data too.
        rows: for each preset, without the family, what the paper prints for it; None if nothing.
        paper: what the paper's figures are.
        dev: what dev is, in a heading.
        test: what test is, in a heading.
        own_encoder: the encoder is the presets' own.
    """

    title: str
    family: str
    rows: dict[str, str | None]
    paper: str
    dev: str = "dev"
    test: str = "test"
    own_encoder: bool = True

    @property
    def presets(self) -> list[str]:
        """The presets, row by row.

        Example:
            >>> TABLES["sst"].presets[-1]
            'sst-tree'
        """
        return [f"{self.family}-{row}" for row in self.rows]

    @property
    def tuned(self) -> TextTable:
        """The same rows, trained by our recipe instead of the paper's.

        Example:
            >>> TABLES["sst"].tuned.presets[-1]
            'sst-tuned-tree'
        """
        return replace(self, title=f"{self.title}, tuned", family=f"{self.family}-{TUNED}")

    def adapted(self, config: TextConfig) -> TextTable:
        """The table for models or classes that are not the paper's: without its figures.

        Args:
            config: of one of the runs.

        Returns:
            The table with another title if it has to be.

        Example:
            >>> from treelax.tasks.text.presets import preset
            >>> from treelax.training.config import override
            >>> config = override(preset("sst-tree"), ["data.classes=five"])
            >>> TABLES["sst"].adapted(config).title
            'Sentiment of the Stanford Sentiment Treebank, five classes'
        """
        preset = PRESETS[config.preset][0]()
        adapted = self
        if config.data.classes != preset.data.classes:
            adapted = replace(adapted, title=adapted.title.replace("binary", "five classes"))
        if config.model.encoder != preset.model.encoder:
            title = f"{adapted.title}, encoder {config.model.encoder}"
            adapted = replace(adapted, title=title, own_encoder=False)
        return self if adapted is self else replace(adapted, rows=dict.fromkeys(self.rows))

    def label(self, preset: str) -> str:
        """What a row is, see `label`."""
        text = label(preset)
        return text if self.own_encoder else text.removeprefix("BiLSTM ")

    @property
    def headings(self) -> tuple[str, ...]:
        """Of the columns of `text_rows`."""
        return (
            "trees",
            self.paper,
            "parameters",
            "seeds",
            self.dev,
            self.test,
            f"{self.dev}, soft trees",
            f"{self.test}, soft trees",
            f"every seed, {self.dev}/{self.test}",
        )


# accuracies as the paper prints them: tables 2, 3b, 3c and 3a
TABLES = {
    "snli": TextTable(
        "SNLI",
        "snli",
        {"none": "84.4", "intra": "83.8", "tree-1": "85.2", "tree-2": "86.2"},
        "paper, test",
    ),
    "multinli": TextTable(
        "MultiNLI",
        "multinli",
        {"none": "68.1", "tree-1": "71.5", "tree-2": "73.0"},
        "paper, matched test",
        "matched dev",
        "mismatched dev",
    ),
    "ablation": TextTable(
        "MultiNLI: kinds of trees",
        "multinli",
        {
            "none": "68.5 / 68.9",
            "intra": "67.9 / 68.4",
            "chain-1": "71.2 / 71.8",
            "chain-2": "72.3 / 71.1",
            "heads-1": "69.0 / 69.4",
            "heads-2": "68.7 / 69.6",
            "tree-1": "71.9 / 71.7",
            "tree-2": "73.2 / 72.9",
        },
        "paper, matched / mismatched dev",
        "matched dev",
        "mismatched dev",
    ),
    "sst": TextTable(
        "Sentiment of the Stanford Sentiment Treebank, binary",
        "sst",
        {"none": None, "chain": None, "heads": None, "given": "83.8", "tree": "84.6"},
        "paper, test",
    ),
}
ON_SCREEN = (0, 1, 3, 4, 5)  # columns that fit a terminal; the file has all


def text_record(result: dict[str, Any]) -> dict[str, Any]:
    """One run's line of the CSV, from its ``test.json``.

    Args:
        result: what `treelax.analysis.text_results.read_text_result` returns.

    Returns:
        A value for each of `COLUMNS`; None where there is no test set.
    """
    line: dict[str, Any] = {
        key: result.get(key)
        for key in (
            *("preset", "seed", "training_examples", "mixed_examples", "parameters"),
            *("best_epoch", "epochs", "updates", "device"),
        )
    }
    for split in ("dev", "test"):
        figures = result["splits"].get(split, {})
        line[f"{split}_examples"] = figures.get("examples")
        for key in ("accuracy", "soft_accuracy"):
            # rounded here, once, so that all that is made from the records agrees
            value = figures.get(key)
            line[f"{split}_{key}"] = None if value is None else round(value, 3)
    return line | {"seconds": round(result["seconds"], 1)}


def text_rows(table: TextTable, records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Rows for the table's headings: the paper, our mean and spread, every seed.

    Args:
        table: which one.
        records: of `text_record`, in any order.

    Returns:
        The cells: first the table's presets in their order, then any others.
    """
    paper = dict(zip(table.presets, table.rows.values(), strict=True))
    others = [r["preset"] for r in records if r["preset"] not in paper]
    rows = []
    for preset in dict.fromkeys((*paper, *others)):
        own = sorted((r for r in records if r["preset"] == preset), key=lambda r: r["seed"])
        if own:
            sizes = sorted({r["parameters"] for r in own if r["parameters"] is not None})
            rows.append(
                [
                    table.label(preset),
                    paper.get(preset) or "–",
                    ", ".join(f"{size:,}" for size in sizes) or "–",
                    str(len(own)),
                    _column(own, "dev_accuracy"),
                    _column(own, "test_accuracy"),
                    _column(own, "dev_soft_accuracy"),
                    _column(own, "test_soft_accuracy"),
                    ", ".join(
                        "/".join(_short(r[f"{split}_accuracy"]) for split in ("dev", "test"))
                        for r in own
                    ),
                ]
            )
    return rows


def label(preset: str) -> str:
    """What a preset is, without the name of its data.

    Args:
        preset: its name.

    Returns:
        A few words, or the name if there is no such preset.

    Example:
        >>> label("snli-tree-2")
        'latent tree, 2 GCN'
    """
    text = PRESETS[preset][1] if preset in PRESETS else preset
    return text.partition(": ")[2] or text


def amount(config: TextConfig, result: dict[str, Any]) -> str:
    """How much training data a run had, and what part of the whole set that is.

    Args:
        config: of the run.
        result: of the run.

    Returns:
        The words.

    Example:
        >>> amount(PRESETS["snli-none"][0](), {"training_examples": 109_873, "mixed_examples": 0})
        '109,873 of the 549,367 training pairs of SNLI (20 %)'
    """
    mixed = result.get("mixed_examples", 0)
    own = result["training_examples"] - mixed
    data = config.data
    if data.format == "sst":
        text = _part(own, f"sst-{data.classes}", "training sentences of SST")
    elif data.format in CORPORA:
        text = _part(own, data.format, f"training pairs of {CORPORA[data.format].title}")
    else:
        text = f"{own:,} training examples"
    if not mixed:
        return text
    with_snli = f"{text} and {_part(mixed, 'snli', 'training pairs of SNLI')}"
    if data.mix_share == 1:
        return with_snli
    return f"{with_snli}, of which each epoch draws {100 * data.mix_share:g} %"


def vectors_of(config: TextConfig) -> str:
    """Which word vectors a run had, by the names of their files.

    Args:
        config: of the run.

    Returns:
        The words.

    Example:
        >>> from dataclasses import replace
        >>> config = PRESETS["sst-tree"][0]()
        >>> vectors_of(config)
        'random word vectors'
        >>> vectors_of(replace(config, data=replace(config.data, vectors="here/glove.zip")))
        'word vectors of glove.zip'
    """
    data, model = config.data, config.model
    if model.pretrained is not None:
        return f"word vectors of the transformer {PurePath(model.pretrained).name}"
    if data.vectors is None:
        return "random word vectors"
    files = (PurePath(path).name for path in (data.vectors, *data.more_vectors))
    return f"word vectors of {' and '.join(files)}"


def sizes_of(table: TextTable, result: dict[str, Any]) -> str:
    """How many examples the figures of a run are of.

    Args:
        table: which has names for dev and test.
        result: of the run.

    Returns:
        The words.

    Example:
        >>> sizes_of(TABLES["sst"], {"splits": {"dev": {"examples": 872}, "test": {"examples": 1821}}})
        'dev has 872 examples, test 1,821'
    """
    names = {"dev": table.dev, "test": table.test}
    sizes = [f"{names[s]} {f['examples']:,}" for s, f in result["splits"].items() if s in names]
    first, *others = sizes
    name, _, size = first.rpartition(" ")
    return ", ".join([f"{name} has {size} examples", *others])


def trees_of(config: TextConfig) -> str:
    """Where the given trees of a run are from, by the names of their files; empty if there are none.

    Args:
        config: of the run.

    Returns:
        The names.

    Example:
        >>> trees_of(PRESETS["sst-tree"][0]())
        ''
    """
    return "" if config.data.trees is None else PurePath(config.data.trees).name


def _part(some: int, corpus: str, what: str) -> str:
    """How many of the training examples of a corpus, as it is distributed, some are."""
    whole = CORPORA[corpus].official["train"]
    if some == whole:
        return f"all {whole:,} {what}"
    return f"{some:,} of the {whole:,} {what} ({_percent(some / whole)})"


def _percent(share: float) -> str:
    """A share that is neither nothing nor all, and must not look so."""
    if share < 0.001:
        return "less than 0.1 %"
    if 0.99 < share < 1:
        return "more than 99 %"
    return f"{100 * share:.{0 if share >= 0.1 else 1}f} %"


def _column(records: Sequence[dict[str, Any]], key: str) -> str:
    values = [r[key] for r in records if r[key] is not None]
    return spread(values) if values else "–"


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
