"""Trained sentence models: to predict with, to save, to publish and to load."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from treelax.apps import tasks
from treelax.apps.data.conllu import Sentence
from treelax.apps.data.text.vectors import NULL, Vectors
from treelax.apps.tasks.base import (
    Answer,
    Example,
    Examples,
    Label,
    LabelFigures,
    Prediction,
    Progress,
    Source,
    Text,
    Tree,
    heads_without_null,
)
from treelax.apps.tasks.sentences.hub import publish_folder
from treelax.apps.tasks.sentences.inputs import check_tree, read_examples, words_in
from treelax.apps.tasks.sentences.origins import Origin, TrainingFile, read_origins
from treelax.apps.tasks.sentences.trained import SentenceParser, Texts
from treelax.apps.tasks.sentences.transformer import SubwordTable
from treelax.apps.tasks.sentences.word_vectors import GROWING, THE_MODEL, VectorFiles, WordVectors
from treelax.apps.tasks.text.config import SentenceSettings, TextConfig
from treelax.apps.tasks.text.model import NETWORKS, Sentences, network_for
from treelax.apps.tasks.text.model_files import load_folder, save_folder
from treelax.apps.tasks.text.sources import own_examples, training_files
from treelax.apps.training.checkpoint import restoring
from treelax.apps.training.run import CONFIG, Run
from treelax.brackets import brackets
from treelax.errors import InputError, TreelaxError
from treelax.nn.modes import evaluating

__all__ = ["Prediction", "SentenceModel", "SentenceSettings"]

LEARNED = "encoder.embedding.learned"  # saved as rows of the word vectors, not as a weight
OUTSIDE = 1e4  # what an arc outside a given tree lacks


class SentenceModel(SentenceParser, nn.Module):
    """A model of sentences with everything it needs to label new texts.

    Load one with `from_run` or `from_pretrained`, which return it in evaluation mode; the constructor
    makes an untrained one. It can be trained further and moved like any other module.

    Args:
        settings: kind, sizes, and how texts become words.
        vectors: of the words.
        labels: names of classes or tags.

    Attributes:
        network: the layers.
        settings: as given.
        vectors: as given, and what was looked up since.
        labels: as given.

    Raises:
        InputError: settings and vectors do not fit.

    Example:
        >>> from treelax.apps.data.text.vectors import random_vectors
        >>> model = SentenceModel(SentenceSettings(), random_vectors(["dogs", "bark"], 8), ["yes"])
        >>> [found] = model.predict(["Dogs bark."])
        >>> found.label, found.words
        ('yes', (('Dogs', 'bark', '.'),))
    """

    word_vectors: WordVectors
    unknown_share = "share a hundred vectors"
    sample = ("the old cat watched a small bird", "a cat saw a bird")

    def __init__(self, settings: SentenceSettings, vectors: Vectors, labels: Sequence[str]) -> None:
        super().__init__()
        self.settings, self.vectors, self.labels = settings, vectors, tuple(labels)
        self.name = THE_MODEL  # in messages
        self.task, self.text, self.null = settings.kind, settings.text, settings.null
        self.is_tagger, self.trees = settings.kind == "tag", settings.model.trees
        self.takes_vectors = bool(settings.vectors)
        self.tag_column = settings.label or "UPOS"
        self.tokens = settings.tokens
        self.config: TextConfig | None = None  # of the run that it is from
        self.origins: Mapping[str, Origin] = {}  # the files of that run
        network = network_for(settings.kind, settings.model)
        self.network = network(settings.model, vectors.matrix, len(labels))
        encoder = self.network.encoder
        self.tree, self.transformer = encoder.tree, encoder.transformer
        names, learned = settings.vectors, settings.model.learned_words
        self.word_vectors = WordVectors(
            vectors, encoder.embedding, names, settings.normalise, learned
        )
        if self.transformer is not None:
            self.word_vectors.origin = "has a transformer, which makes its word vectors"

    def forward(self, *texts: Any, **options: Any) -> Tensor:
        """Logits, as the network gives them; see `treelax.apps.tasks.text.model`."""
        return self.network(*texts, **options)

    def read(self, source: Source) -> Examples:
        """The examples that a user names."""
        return read_examples(self.settings, source)

    def own_examples(self, split: str, *, limit: int | None = None) -> Examples:
        """The examples of a split of its run."""
        if self.config is None:
            raise InputError(
                f"{self.name}: is a saved model, which has no data; expected --data FILE"
            )
        return own_examples(self.config, self.settings, split, self.origins, limit=limit)

    def training_files(self) -> Iterable[TrainingFile]:
        """The files that the config of its run names."""
        return () if self.config is None else training_files(self.config.data)

    def evaluate(
        self, examples: Sequence[Example], *, progress: Progress | None = None
    ) -> LabelFigures:
        """Accuracy with discrete and with soft trees."""
        given = [e.texts[0] if self.settings.texts == 1 else e.texts for e in examples]
        labels: list[tuple[Label, Label, Label]] = []
        done = 0
        both = zip(examples, self.stream(given), self.stream(given, soft=True), strict=True)
        for example, hard, soft in both:
            if example.label is not None:
                labels.append((hard.label, soft.label, example.label))
            done += sum(map(len, example.texts))
            if progress is not None:
                progress(done)
        if (figures := LabelFigures.of(labels)) is None:
            raise InputError("received no example with a label; expected some to compare with")
        return figures

    @torch.no_grad()
    def answer(self, texts: Sequence[Sequence[str]], trees: Sequence[Tensor]) -> Answer | None:
        """The label of a text or of two with its probability, or a tag for every word."""
        if self.tree is None:
            return None
        if len(texts) < self.settings.texts:
            return Answer("No label yet: this model labels two texts together.")
        # scores whose best trees are these; a model with another rule of roots takes the nearest
        size = max(map(len, trees))
        padded = [F.pad(tree, (0, size - len(tree)) * 2, value=1) for tree in trees]
        forced = OUTSIDE * (torch.stack(padded).float() - 1)
        words = [list(text) for text in texts]
        with GROWING:
            hook = self.tree.scorer.register_forward_hook(lambda *_: forced)
            try:
                [prediction] = self.predict([words if len(words) == 2 else words[0]], tokens=True)
            finally:
                hook.remove()
        if isinstance(prediction.label, tuple):
            return Answer("Tags stand below the words.", list(map(str, prediction.label)))
        assert isinstance(prediction.probability, float)
        return Answer(f"{prediction.label} ({100 * prediction.probability:.0f} %)")

    def _table(self) -> Any:
        return self.network.encoder.read(self.vectors)

    def _spelled(self, words: Iterable[str]) -> Iterable[str]:
        return map(str.lower, words) if self.settings.lower else words

    def _has_vector(self, word: str) -> bool:
        return word in self.vectors

    def _check(self, texts: Texts, where: str) -> None:
        """Refuse texts that are too long for a transformer, or without the trees they need."""
        table = self._table()
        for text in texts:
            if isinstance(table, SubwordTable):
                table.check_length(self._spelled(words_in(text)), where)
            if self.settings.needs_trees and len(text):
                if not isinstance(text, Sentence):
                    raise InputError(
                        f"{where}: received words without heads, and model.trees is 'given'; "
                        "expected a tree with every text, for example sentences from read_conllu"
                    )
                check_tree(text, where)

    def _batches(self, examples: Sequence[Texts]) -> list[Sentences]:
        """All first texts as the network takes them, then all second ones."""
        table = self._table()
        if isinstance(table, SubwordTable):
            table.forget()
        return [self._batch(texts, table) for texts in zip(*examples, strict=True)]

    def _batch(self, texts: Sequence[Text], table: Any) -> Sentences:
        device, null = next(self.network.parameters()).device, int(self.null)

        def padded(rows: Iterable[list[int]]) -> Tensor:
            return pad_sequence([torch.tensor(row) for row in rows], batch_first=True).to(device)

        words = [[NULL] * null + table.ids(self._spelled(words_in(text))) for text in texts]
        heads = None
        if self.settings.needs_trees:
            given = [text.heads or () for text in texts if isinstance(text, Sentence)]
            heads = padded([0] * null + [h + null * (h > 0) for h in row] for row in given)
        return Sentences(padded(words), torch.tensor([*map(len, words)], device=device), heads)

    @torch.no_grad()
    def _predict(
        self, examples: list[Texts], soft: bool = False, scores: bool = False
    ) -> list[Prediction]:
        null, batches = int(self.null), self._batches(examples)
        with evaluating(self.network):
            # trees of all first texts, then of the second
            logits, tree, tree_scores = self.network.parse(*batches, soft=soft)
        if tree is not None and soft and self.tree is not None:
            tree = self.tree.discrete(tree, torch.cat([batch.lengths for batch in batches]))
        rooted = self.notation == "heads"
        predicted = tree[..., 1:].argmax(-2) if tree is not None and rooted else tree
        trees, matrices = (
            () if part is None else part.cpu().chunk(len(batches))
            for part in (predicted, tree_scores if scores else None)
        )
        logits = logits[:, null:] if self.is_tagger else logits
        decision = logits, batches[0].lengths - null
        shares = self.network.probabilities(*decision).tolist()
        labels = self.network.best_labels(*decision).tolist()
        predictions = []
        for i, example in enumerate(examples):
            words = tuple(map(words_in, example))
            sizes = [len(text) + null + rooted for text in words]
            cut = [part[i, :n, :n].float() for part, n in zip(matrices, sizes, strict=False)]
            written = [self._tree(text, part[i]) for text, part in zip(words, trees, strict=False)]
            rows, numbers = [shares[i]], [labels[i]]
            if self.is_tagger:
                rows, numbers = (part[i][: len(words[0])] for part in (shares, labels))
            named = tuple(dict(zip(self.labels, row, strict=True)) for row in rows)
            best = tuple(self.labels[number] for number in numbers)
            predictions.append(
                Prediction(
                    words,
                    best if self.is_tagger else best[0],
                    named if self.is_tagger else named[0],
                    scores=tuple(map(Tensor.clone, cut)) or None,
                    **{self.notation: tuple(written) or None},  # type: ignore[arg-type]
                )
            )
        return predictions

    def _tree(self, words: Sequence[str], row: Tensor) -> Tree:
        if self.notation == "brackets":
            return brackets(self._of_words(row)[: len(words), : len(words)], words)
        heads = row[: len(words) + self.null].tolist()
        return heads_without_null(heads) if self.null else tuple(heads)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        revision: str | None = None,
        device: str | torch.device = "cpu",
        vectors: VectorFiles | None = None,
    ) -> SentenceModel:
        """Load a model that `save_pretrained` saved, or the best one of a run; see `treelax.load`.

        Args:
            name: the folder of a saved model or of a run, or OWNER/NAME of a model on the Hugging
                Face hub.
            revision: on the hub, a branch, tag or commit; the newest by default.
            device: where to put it.
            vectors: the files of word vectors that it was trained with, in the same order, to look up
                words that training never saw.

        Returns:
            The model, in evaluation mode. No random number is drawn.
        """
        model = tasks.load(name, revision=revision, device=device, vectors=vectors)
        if not isinstance(model, SentenceModel):
            raise InputError(
                f"{name}: is a run of {model.task}; expected one of {', '.join(NETWORKS)}, which "
                "take sentences"
            )
        return model

    from_run = from_pretrained

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Save the model as a folder that `from_pretrained` loads.

        All words are saved with their vectors, also those looked up since it was loaded.

        Args:
            folder: made with its parents if it does not exist; an older model in it is replaced.

        Raises:
            InputError: the folder holds a run or a model of another program, or is a file.
            CheckpointError: a file cannot be written.

        Example:
            >>> import tempfile
            >>> from treelax.apps.data.text.vectors import random_vectors
            >>> model = SentenceModel(SentenceSettings(), random_vectors(["dogs"], 8), ["yes"])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model.save_pretrained(folder)
            ...     SentenceModel.from_pretrained(folder).labels
            ('yes',)
        """
        weights = {k: v for k, v in self.network.state_dict().items() if k != LEARNED}
        embedding, vectors = self.network.encoder.embedding, self.vectors
        if embedding.learned is not None:
            matrix = embedding.table.detach().cpu().clone()
            matrix[1 : len(embedding.learned) + 1] = embedding.learned.detach()
            vectors = Vectors(matrix, vectors.known, unknown=vectors.unknown)
        save_folder(Path(folder), self.settings, vectors, self.labels, weights)

    def push_to_hub(
        self, name: str, *, private: bool = False, message: str = "A treelax sentence model"
    ) -> str:
        """Publish the model as OWNER/NAME on the Hugging Face hub; returns the URL of the commit."""
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return publish_folder(name, Path(folder), private=private, message=message)


def load(
    path: Path,
    *,
    name: str,
    device: str | torch.device = "cpu",
    vectors: Sequence[Path] | None = None,
) -> SentenceModel:
    """The model of a run or of a saved folder."""
    saved = load_folder(path, tasks.task_of(path))
    with restoring(saved.file, keep=TreelaxError if saved.settings.model.pretrained else ()):
        model = SentenceModel(saved.settings, saved.vectors, saved.labels)
        new = model.network.state_dict()
        # a saved model has its learned vectors as rows of the matrix, where they start from
        learned = {LEARNED: new[LEARNED]} if LEARNED in new else {}
        model.network.load_state_dict(learned | dict(saved.weights))
    model.name = model.word_vectors.model = name
    model.word_vectors.use_files(vectors)
    if (path / CONFIG).is_file():
        model.config, model.origins = Run.open(path).config(TextConfig), read_origins(path)
    return model.eval().to(device)
