"""Trained models whose trees are studied: of ListOps or of sentences, by the name of their run."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from treelax.analysis.corpora import Corpus
from treelax.analysis.corpus_readers import (
    listops_corpus,
    read_treebank,
    split_records,
    text_corpus,
)
from treelax.analysis.parse_listops import parse_listops
from treelax.analysis.parse_sentences import parse_sentences
from treelax.analysis.parses import Parses, Progress
from treelax.data.sources import one_file
from treelax.data.text.readers_tagging import WORD_SUFFIXES
from treelax.errors import InputError
from treelax.tasks.listops.experiment import load_splits
from treelax.tasks.text.config import SPLIT, TextConfig
from treelax.tasks.text.new_words import VectorFiles, refuse_vectors
from treelax.tasks.text.origins import Origin, find_again, read_origins, trees_of
from treelax.training.models import TrainedModel, is_listops, load_model
from treelax.tasks.text.pretrained import SentenceModel
from treelax.training.run import CONFIG, Run

__all__ = ["ListOpsSubject", "SentenceSubject", "Subject", "load_subject"]

TREEBANK_SUFFIX = ".conllu"


class Subject(ABC):
    """A trained model that can parse.

    Attributes:
        name: of its run.
    """

    name: str

    @abstractmethod
    def own_corpus(self, split: str, *, limit: int | None = None) -> Corpus:
        """The data that the model was trained on or chosen by.

        Args:
            split: "train", "dev" or "test".
            limit: the most examples to read.

        Returns:
            The sentences.

        Raises:
            DataError: a file does not exist any more, or cannot be read.
            InputError: there is no such split, or a file is not what the model was trained with.
        """

    @abstractmethod
    def parse(self, corpus: Corpus, *, progress: Progress | None = None) -> Parses:
        """What the model says of a corpus.

        Args:
            corpus: the sentences.
            progress: called with the number of words done.

        Returns:
            Trees, entropies and figures of labels.

        Raises:
            InputError: the model has no trees, or cannot parse these sentences.
        """


@dataclass(frozen=True)
class ListOpsSubject(Subject):
    """A ListOps tagger.

    Attributes:
        name: of its run.
        loaded: the tagger and its config.
    """

    name: str
    loaded: TrainedModel

    def own_corpus(self, split: str, *, limit: int | None = None) -> Corpus:
        """The expressions of a split, read or generated; see `Subject.own_corpus`."""
        expressions = load_splits(self.loaded.config.data).expressions[split]
        return listops_corpus(expressions[:limit], f"{split} set of {self.name}")

    def parse(self, corpus: Corpus, *, progress: Progress | None = None) -> Parses:
        """Trees and tags of expressions; see `Subject.parse`."""
        return parse_listops(self.loaded.model, corpus, self.name, progress=progress)


@dataclass(frozen=True)
class SentenceSubject(Subject):
    """A sentence model.

    Attributes:
        name: of its run.
        model: the model.
        config: of the run; None for a saved model, which has no data of its own.
        origins: the files that it was trained with; nothing where the run does not say.
    """

    name: str
    model: SentenceModel
    config: TextConfig | None
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def own_corpus(self, split: str, *, limit: int | None = None) -> Corpus:
        """The sentences of a split, where its file is still what it was; see `Subject.own_corpus`."""
        if self.config is None:
            raise InputError(
                f"{self.name}: is a saved model, which has no data of its own; expected --data FILE"
            )
        data = self.config.data
        if self.config.model.trees == "given" and data.trees is not None:
            trees, name = data.trees.replace(SPLIT, split), trees_of(split)
            file = find_again(trees, self.origins.get(name), f"file of {name}")
            return read_treebank(file, limit=limit)
        records = split_records(data, split, self.origins.get(split))
        assert records.file is not None  # all readers of runs read a file
        if data.format == "tagging":
            # as the reader of tagged words finds it in an archive
            found = one_file(records.file, preferred=WORD_SUFFIXES)
            if found.suffix == TREEBANK_SUFFIX:
                return read_treebank(records.file, limit=limit)
        return text_corpus(records, records.source, texts=self.model.settings.texts, limit=limit)

    def parse(self, corpus: Corpus, *, progress: Progress | None = None) -> Parses:
        """Trees and labels of sentences; see `Subject.parse`."""
        return parse_sentences(self.model, corpus, self.name, progress=progress)


def load_subject(
    run: str | os.PathLike[str],
    *,
    name: str | None = None,
    device: str | torch.device = "cpu",
    vectors: VectorFiles | None = None,
) -> Subject:
    """Load a trained model to study its trees.

    Args:
        run: the folder of a run or of a saved sentence model, a file ``model.safetensors`` of
            ListOps, or "listops" for the model that comes with treelax.
        name: what to call it; as ``run`` by default.
        device: where to put it.
        vectors: files of word vectors to look up new words, see `SentenceModel.from_run`.

    Returns:
        The model.

    Raises:
        InputError: there is nothing of that name, or it has no use for word vectors.
        CheckpointError: a file is damaged or of another version.
        DataError: what the run says of its files is damaged, or a file of word vectors is not there.

    Example:
        >>> from treelax.data.listops import parse_expression
        >>> corpus = listops_corpus([parse_expression("[MAX 2 [MIN 4 7 ] 0 ]")], "one")
        >>> load_subject("listops").parse(corpus).trees
        ((0, 1, 1, 3, 3, 3, 1, 1),)
    """
    called = str(run) if name is None else name
    if is_listops(run):
        refuse_vectors(vectors, called)
        return ListOpsSubject(called, load_model(run, device=device))
    model = SentenceModel.from_pretrained(run, device=device, vectors=vectors)
    if not (Path(run) / CONFIG).is_file():
        return SentenceSubject(called, model, None)
    config = Run.open(run).config(TextConfig)
    return SentenceSubject(called, model, config, read_origins(Path(run)))
