"""The commands of tasks on sentences: what their help says, and options for their settings."""

from __future__ import annotations

from pathlib import Path

from treelax.apps.tasks.commands import (
    FILE_OPTIONS,
    RUN_HELP,
    VECTORS,
    Option,
    TrainCommand,
)

CLASSIFY_HELP = f"""Train a text classifier with latent trees on your own files.

Files are TSV or CSV with a header, or JSON lines; they may be compressed.
Without --vectors, word vectors start at random.

{RUN_HELP}

Example:
  treelax train classify --train train.tsv --dev dev.tsv --text review \\
      --label stars --out runs/stars
"""
PAIR_HELP = f"""Train a classifier of pairs of texts with latent trees on your own files.

The label says how the two texts of a pair are related. Files are like those
of treelax train classify, with two text columns.

{RUN_HELP}

Example:
  treelax train pair --train train.csv --dev dev.csv --text question \\
      --text answer --label fits
"""
TAG_HELP = f"""Train a word tagger with latent trees on your own files.

Files have one word per line with its tag in the last column and a blank
line between sentences, or are CoNLL-U. --text and --label select other
columns, by number (from 1) or, in CoNLL-U, by name. For a linear-chain CRF
over the tags: --set model.output=chain.

{RUN_HELP}

Examples:
  treelax train tag --train train.conllu --dev dev.conllu --out runs/tags
  treelax train tag --train eng.train --dev eng.testa --label 2 --out runs/pos
  treelax train tag --train train.conllu --dev dev.conllu --label XPOS
"""
CORPUS_HELP = """Train on {title} as the paper does.

Presets are the rows of its tables. Without --from, the corpus is the one
downloaded by treelax data {corpus}.{mixture}

{run}

Example:
  treelax train {corpus} --preset {corpus}-{row} --from {archive} \\
      --vectors glove.840B.300d.zip{mix}
"""
MIXTURE = """

The paper trains on MultiNLI and SNLI: the setting data.mix=snli_1.0.zip adds
SNLI, 15 percent of it drawn anew for each epoch or, with tuned settings, all."""
CORPORA = {
    "snli": ("SNLI", "snli_1.0.zip", "tree-2"),
    "multinli": ("MultiNLI", "multinli_1.0.zip", "tree-2"),
    "sst": ("the Stanford Sentiment Treebank", "trainDevTestTrees_PTB.zip", "tree"),
}
TABLE_OPTIONS = (
    *FILE_OPTIONS,
    Option(
        "--text",
        "data.text",
        list[str],
        "Text column; twice for pair. Default: text; first and second.",
    ),
    Option("--label", "data.label", str, "Label column; default: label."),
    Option("--tokens", "data.tokens", bool, "Texts are tokenised: words separated by spaces."),
    VECTORS,
)
TAG_OPTIONS = (
    *FILE_OPTIONS,
    Option(
        "--text", "data.word", str, "Word column: 1, 2, ... or a name; default: the first, or FORM."
    ),
    Option(
        "--label", "data.tag", str, "Tag column: 1, 2, ... or a name; default: the last, or UPOS."
    ),
    VECTORS,
)
CORPUS = Option(
    "--from", "data.path", Path, "Folder or archive of the corpus; default: the one downloaded."
)


def corpus_help(text: str, corpus: str, **values: str) -> str:
    """A help text with the names of a corpus, its archive and a preset filled in."""
    title, archive, row = CORPORA[corpus]
    mixes = corpus == "multinli"
    mixture = {"mixture": MIXTURE * mixes, "mix": " --set data.mix=snli_1.0.zip" * mixes}
    return text.format(title=title, corpus=corpus, archive=archive, row=row, **mixture, **values)


def _train(name: str, task: str) -> TrainCommand:
    help, preset = corpus_help(CORPUS_HELP, name, run=RUN_HELP), f"{name}-{CORPORA[name][2]}"
    return TrainCommand(name, task, help, preset, True, (CORPUS, *FILE_OPTIONS, VECTORS))


TRAIN = (
    TrainCommand("classify", "classify", CLASSIFY_HELP, "classify", options=TABLE_OPTIONS),
    TrainCommand("pair", "pair", PAIR_HELP, "pair", options=TABLE_OPTIONS),
    TrainCommand("tag", "tag", TAG_HELP, "tag", options=TAG_OPTIONS),
    _train("snli", "pair"),
    _train("multinli", "pair"),
    _train("sst", "classify"),
)
