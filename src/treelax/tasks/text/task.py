"""Tasks on sentences: classes of texts, relations of pairs, tags of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from treelax.data.text.rows import counted
from treelax.errors import CheckpointError
from treelax.tasks.base import Progress, Table, Task, TrainCommand, TrainOption
from treelax.tasks.text.config import FILES, Kind, TextConfig
from treelax.tasks.text.data import load_text
from treelax.tasks.text.experiment import TextExperiment, evaluation_batches
from treelax.tasks.text.model_files import WORDS, load_words, save_words
from treelax.tasks.text.origins import refuse_missing, refuse_other_test, write_origins
from treelax.tasks.text.presets import fitting_presets, preset
from treelax.tasks.text.pretrained import SentenceModel
from treelax.tasks.text.transformer import COPY, check_folder, copy_folder, with_own_copy
from treelax.training.experiment import Experiment
from treelax.training.loop import Training
from treelax.training.results import NUMBER, Kinds, device_name, expect
from treelax.training.run import CONFIG, Run

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
FILE_OPTIONS = (
    TrainOption("--train", "data.train", Path, "Training data."),
    TrainOption("--dev", "data.dev", Path, "Data to choose the best model by."),
    TrainOption("--test", "data.test", Path, "Data for the figures at the end."),
)
VECTORS = TrainOption(
    "--vectors",
    "data.vectors",  # the others are data.more_vectors
    list[Path],
    "Word vectors: GloVe or word2vec text, zipped or not, or npz; several are joined.",
)
TABLE_OPTIONS = (
    *FILE_OPTIONS,
    TrainOption(
        "--text",
        "data.text",
        list[str],
        "Column of the text; twice for pair. By default: text; first and second.",
    ),
    TrainOption("--label", "data.label", str, "Column of the label; label by default."),
    TrainOption("--tokens", "data.tokens", bool, "Texts are words with spaces between."),
    VECTORS,
)
TAG_OPTIONS = (
    *FILE_OPTIONS,
    TrainOption(
        "--text", "data.word", str, "Column of the words: 1, 2, ... or a name; the first, or FORM."
    ),
    TrainOption(
        "--label", "data.tag", str, "Column of the tags: 1, 2, ... or a name; the last, or UPOS."
    ),
    VECTORS,
)
CORPUS_OPTIONS = (
    TrainOption(
        "--from", "data.path", Path, "Folder or archive of the corpus; else what was fetched."
    ),
    *FILE_OPTIONS,
    VECTORS,
)
KINDS: Kinds = {
    **dict.fromkeys(("preset", "kind", "device"), str),
    **dict.fromkeys(("seed", "training_examples", "best_epoch", "epochs", "updates"), int),
    "seconds": NUMBER,
    "labels": list,
    "splits": dict,
}
TITLES = {"classify": "classes of texts", "pair": "pairs of texts", "tag": "tags of words"}
LATER = ("mixed_examples", "parameters")  # numbers that the first results did not have


class TextTask(Task):
    """A kind of task on sentences."""

    config_type = TextConfig
    files = FILES

    def __init__(self, kind: Kind, commands: tuple[TrainCommand, ...]) -> None:
        self.name = kind
        self.title = TITLES[kind]
        self.commands = commands

    def preset(self, name: str) -> TextConfig:
        """The config of a preset."""
        return preset(name)

    def experiment(
        self,
        config: TextConfig,
        device: torch.device,
        folder: Path,
        tell: Callable[[str], None],
        progress: Callable[[int, str], None],
    ) -> TextExperiment:
        """Model, data and loss of a run."""
        model = with_own_copy(config.model, folder)
        if model.pretrained is not None:  # told now, not when all texts have been read
            check_folder(model.pretrained)
        if (folder / CONFIG).exists():  # a run to go on with: a new one gets its folder later
            refuse_missing(folder, config.data)
            refuse_other_test(folder, config.data)
        data = load_text(
            config.data,
            lambda split, done, total: progress(done, split),
            whole_words=model.pretrained is not None,
        )
        for split, notes in data.notes.items():
            for note in notes:
                tell(f"{split}: {note}")
        if data.coverage is not None:
            found, words = data.coverage
            tell(
                f"word vectors: {found:,} of {words:,} words of the data found "
                f"({100 * found / words:.1f} %), {words - found:,} unknown"
            )
            if 2 * found < words:
                tell(
                    "note: fewer than half of the words have a vector; expected most of them: are the "
                    "vectors of the language of the texts?"
                )
        return TextExperiment(config, data, device, model=model)

    def prepare(self, run: Run, experiment: Experiment) -> None:
        """Copy the transformer, if there is one."""
        if experiment.config.model.pretrained is not None:
            copy_folder(experiment.config.model.pretrained, run.path / COPY)

    def begin(self, run: Run, training: Training) -> None:
        """Keep the words, and what the data were."""
        experiment: TextExperiment = training.experiment  # type: ignore[assignment]
        vectors, labels = experiment.data.vectors, experiment.labels
        if not training.knows_data and (run.path / WORDS).exists():  # an older run
            words, before, _ = load_words(run.path / WORDS)
            if (words.known, before) != (vectors.known, labels):
                raise CheckpointError(
                    f"{run.path}: its words or labels are not those it was started with; restore the "
                    "files, or train anew with another --out"
                )
        save_words(run.path / WORDS, vectors, labels, lower=experiment.config.data.lower)
        write_origins(run.path, experiment.config.data)

    def headline(self, experiment: Experiment) -> str:
        """The sizes of a training."""
        own: TextExperiment = experiment  # type: ignore[assignment]
        sizes = {name: f"{name} {len(split):,}" for name, split in own.data.splits.items()}
        if own.mixed:
            sizes["train"] += f" ({own.mixed:,} of them mixed in)"
        epochs, updates = own.config.train.epochs, own.updates
        return (
            f"{', '.join(sizes.values())} examples, {counted(len(own.labels), 'label')}, "
            f"{counted(epochs, 'epoch')} of {counted(updates, 'update')}"
        )

    def describe(self, dev: Mapping[str, float]) -> str:
        """The dev figures of an epoch."""
        return f"acc {dev['accuracy']:.2f}"

    def finish(self, training: Training, progress: Progress | None = None) -> dict[str, Any]:
        """Test the best model on dev and test, with discrete and with soft trees, once."""
        own: TextExperiment = training.experiment  # type: ignore[assignment]
        config = own.config
        splits = {name: _figures(own, name) for name in own.data.splits if name != "train"}
        return {
            "preset": config.preset,
            "seed": config.seed,
            "kind": config.kind,
            "labels": list(own.labels),
            "training_examples": len(own.data.splits["train"]),
            "mixed_examples": own.mixed,
            "parameters": sum(p.numel() for p in own.model.parameters() if p.requires_grad),
            "best_epoch": training.best_epoch,
            "epochs": training.epochs,
            "updates": training.updates,
            "seconds": training.seconds,
            "device": device_name(own.device),
            "data": own.data.fingerprint(("train", *splits), trees=False),
            "splits": splits,
        }

    def check_result(self, record: dict[str, Any]) -> None:
        """Raise a ValueError if a result is damaged."""
        expect(record, KINDS)
        expect(record, {key: int for key in LATER if key in record})
        expect(record["splits"], {"dev": dict})
        for figures in record["splits"].values():
            expect(figures, dict.fromkeys(("examples", "accuracy", "soft_accuracy"), NUMBER))

    def result_tables(self, record: dict[str, Any]) -> list[Table]:
        """The figures of a result."""
        rows = [
            [split, own["examples"], f"{own['accuracy']:.2f}", f"{own['soft_accuracy']:.2f}"]
            for split, own in record["splits"].items()
        ]
        return [Table(["accuracy, %", "examples", "discrete trees", "soft trees"], rows)]

    def load(
        self,
        path: Path,
        *,
        name: str,
        device: str | torch.device = "cpu",
        vectors: Sequence[Path] | None = None,
    ) -> SentenceModel:
        """The model of a run or of a saved folder."""
        model = SentenceModel.from_pretrained(path, device=device, vectors=vectors)
        model.name = name
        return model


@torch.no_grad()
def _figures(experiment: TextExperiment, split: str) -> dict[str, float | int]:
    data = experiment.data.splits[split].to(experiment.device)
    batches = evaluation_batches(
        experiment.data.splits[split], experiment.device, experiment.subwords[split]
    )
    discrete, soft = (
        experiment.summary(experiment.count(data, batches, soft=which))["accuracy"]
        for which in (False, True)
    )
    return {"examples": len(data), "accuracy": discrete, "soft_accuracy": soft}


def _corpus(name: str) -> TrainCommand:
    title, archive, row = CORPORA[name]
    more = MIXED if name == "multinli" else UNMIXED
    help = CORPUS_HELP.format(
        name=title, run=RUN_HELP, command=name, archive=archive, row=row, **more
    )
    presets = {each: text for each, (_, text) in fitting_presets(f"{name}-{row}").items()}
    return TrainCommand(name, help, f"{name}-{row}", presets, CORPUS_OPTIONS)


PAIR = TextTask(
    "pair",
    (
        TrainCommand("pair", PAIR_HELP, "pair", {}, TABLE_OPTIONS),
        _corpus("snli"),
        _corpus("multinli"),
    ),
)
CLASSIFY = TextTask(
    "classify",
    (TrainCommand("classify", CLASSIFY_HELP, "classify", {}, TABLE_OPTIONS), _corpus("sst")),
)
TAG = TextTask("tag", (TrainCommand("tag", TAG_HELP, "tag", {}, TAG_OPTIONS),))
