"""``treelax train classify | pair | tag | snli | multinli | sst``: models of sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from treelax.cli.commands import command
from treelax.cli.options import Device, Resume, Settings, Show, Tokens
from treelax.cli.text_runs import train_sentences
from treelax.training.config import value_to_toml

RUN_HELP = """A run is a folder: config.toml, data.json, metrics.jsonl, checkpoint/, best/,
words.safetensors, tensorboard/, and test.json at its end. One that was killed
goes on with --resume; one that has ended trains on with --resume and more
epochs (--set train.epochs=60)."""
CLASSIFY_HELP = f"""Train a classifier of texts with latent trees on your own files.

Files are TSV or CSV with a line of column names, or JSON lines, also
compressed. Without --vectors words are learned from random vectors.

{RUN_HELP}

Example:
  treelax train classify --train train.tsv --dev dev.tsv --text review \\
      --label stars --out runs/stars
"""
PAIR_HELP = f"""Train a model of pairs of texts with latent trees on your own files.

The label says how the two texts of a pair are related. Files are those of
treelax train classify, with two columns of texts.

{RUN_HELP}

Example:
  treelax train pair --train train.csv --dev dev.csv --text question \\
      --text answer --label fits
"""
TAG_HELP = f"""Train a tagger of words with latent trees on your own files.

Files have a word a line with its tag in the last column and a blank line
between sentences, or are CoNLL-U. --text and --label name other columns: by
number, counted from 1, or in CoNLL-U by name.

{RUN_HELP}

Examples:
  treelax train tag --train train.conllu --dev dev.conllu --out runs/tags
  treelax train tag --train eng.train --dev eng.testa --label 2 --out runs/pos
  treelax train tag --train train.conllu --dev dev.conllu --label XPOS
"""
CORPUS_HELP = """Train on {name} as the paper does.

Presets are the rows of its tables. Without --from the corpus is what treelax
data {command} has fetched.{mixture}

{run}

Example:
  treelax train {command} --preset {command}-{row} --from {archive} \\
      --vectors glove.840B.300d.zip{mix}
"""
# what the help of MultiNLI has besides, here and for its tables: a paragraph, and an option
MIXED = {
    "mixture": """

The paper trains on MultiNLI and SNLI: the setting data.mix=snli_1.0.zip adds
SNLI, 15 percent of it drawn anew for each epoch or, with tuned settings, all.""",
    "mix": " --set data.mix=snli_1.0.zip",
}
UNMIXED = dict.fromkeys(MIXED, "")
CORPORA = {
    "snli": ("SNLI", "snli_1.0.zip", "tree-2"),
    "multinli": ("MultiNLI", "multinli_1.0.zip", "tree-2"),
    "sst": ("the Stanford Sentiment Treebank", "trainDevTestTrees_PTB.zip", "tree"),
}

Out = Annotated[Path | None, typer.Option(help="Folder of the run; runs/PRESET-SEED by default.")]
Seed = Annotated[int | None, typer.Option(help="Of weights, batches, noise and dropout.")]
Vectors = Annotated[
    list[Path] | None,
    typer.Option(
        help="Word vectors: GloVe or word2vec text, zipped or not, or npz; several are joined."
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(help="Column of the text; twice for pair. By default: text; first and second."),
]
Preset = Annotated[str | None, typer.Option(help="A row of the paper's tables; see --list.")]
TrainFile = Annotated[Path | None, typer.Option("--train", help="Training data.")]
DevFile = Annotated[Path | None, typer.Option("--dev", help="Data to choose the best model by.")]
TestFile = Annotated[Path | None, typer.Option("--test", help="Data for the figures at the end.")]


def register_text(group: typer.Typer) -> None:
    """Add the commands to ``treelax train``."""
    command("classify", CLASSIFY_HELP, _own("classify"))(group)
    command("pair", PAIR_HELP, _own("pair"))(group)
    command("tag", TAG_HELP, _tag())(group)
    for corpus, (name, archive, row) in CORPORA.items():
        more = MIXED if corpus == "multinli" else UNMIXED
        text = CORPUS_HELP.format(
            name=name, run=RUN_HELP, command=corpus, archive=archive, row=row, **more
        )
        command(corpus, text, _corpus(corpus, row))(group)


def _own(kind: str) -> Callable[..., None]:
    def command(
        train: TrainFile = None,
        dev: DevFile = None,
        test: TestFile = None,
        text: TextColumns = None,
        label: Annotated[
            str | None, typer.Option(help="Column of the label; label by default.")
        ] = None,
        tokens: Tokens = False,
        vectors: Vectors = None,
        out: Out = None,
        seed: Seed = None,
        settings: Settings = None,
        device: Device = "auto",
        resume: Resume = False,
        show: Show = False,
    ) -> None:
        data = _files(train, dev, test, vectors)
        if text:
            data["text"] = value_to_toml("--text", tuple(text))
        if label is not None:
            data["label"] = value_to_toml("--label", label)
        if tokens:
            data["tokens"] = "true"
        train_sentences(kind, data, settings, seed, out, device, resume, show)

    return command


def _tag() -> Callable[..., None]:
    def command(
        train: TrainFile = None,
        dev: DevFile = None,
        test: TestFile = None,
        text: Annotated[
            str | None,
            typer.Option(help="Column of the words: 1, 2, ... or a name; the first, or FORM."),
        ] = None,
        label: Annotated[
            str | None,
            typer.Option(help="Column of the tags: 1, 2, ... or a name; the last, or UPOS."),
        ] = None,
        vectors: Vectors = None,
        out: Out = None,
        seed: Seed = None,
        settings: Settings = None,
        device: Device = "auto",
        resume: Resume = False,
        show: Show = False,
    ) -> None:
        data = _files(train, dev, test, vectors)
        columns = {"word": text, "tag": label}
        data |= {
            key: value_to_toml(key, column) for key, column in columns.items() if column is not None
        }
        train_sentences("tag", data, settings, seed, out, device, resume, show)

    return command


def _corpus(name: str, row: str) -> Callable[..., None]:
    def command(
        preset: Preset = None,
        source: Annotated[
            Path | None,
            typer.Option("--from", help="Folder or archive of the corpus; else what was fetched."),
        ] = None,
        train: TrainFile = None,
        dev: DevFile = None,
        test: TestFile = None,
        vectors: Vectors = None,
        out: Out = None,
        seed: Seed = None,
        settings: Settings = None,
        device: Device = "auto",
        resume: Resume = False,
        show: Show = False,
    ) -> None:
        data = _files(train, dev, test, vectors)
        if source is not None:
            data["path"] = value_to_toml("--from", str(source))
        usual = f"{name}-{row}"
        train_sentences(usual, data, settings, seed, out, device, resume, show, chosen=preset)

    return command


def _files(
    train: Path | None, dev: Path | None, test: Path | None, vectors: list[Path] | None
) -> dict[str, str]:
    given = {"train": train, "dev": dev, "test": test}
    named = {
        key: value_to_toml(f"--{key}", str(path)) for key, path in given.items() if path is not None
    }
    return named | vector_files(vectors)


def vector_files(paths: Sequence[Path] | None) -> dict[str, str]:
    """Settings of the word vectors in some files, as TOML: a name may have commas, or be "none"."""
    first, more = (paths or [])[:1], (paths or [])[1:]
    named = {"vectors": value_to_toml("--vectors", str(first[0]))} if first else {}
    if more:
        named["more_vectors"] = value_to_toml("--vectors", tuple(map(str, more)))
    return named
