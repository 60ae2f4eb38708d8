"""Trained sentence models that can be asked, saved, passed on and loaded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from treelax.data.conllu import Sentence
from treelax.data.text.records import Record
from treelax.data.text.tokenizer import words_of
from treelax.data.text.vectors import Vectors
from treelax.errors import InputError, TreelaxError
from treelax.tasks.text.prediction import (
    Example,
    Prediction,
    SentenceSettings,
    new_network,
    predict_words,
)
from treelax.training.hub import fetch_folder, looks_like_hub_name, publish_folder
from treelax.training.pretrained_files import (
    FILES,
    SavedSentences,
    load_folder,
    load_run,
    misfit,
    save_folder,
)

__all__ = ["Prediction", "SentenceModel", "SentenceSettings"]

LEARNED = "encoder.embedding.learned"  # saved as rows of the word vectors, not as a weight
SHOWN = 60  # characters of a text in a message


class SentenceModel(nn.Module):
    """A model of sentences with all that it takes to give it new texts.

    Make one with `from_run` or `from_pretrained`; the constructor makes an untrained one. It is in
    evaluation mode when it is loaded, and may be trained further or moved as any other module.

    Args:
        settings: kind, sizes, and how texts become words.
        vectors: of the words.
        labels: names of classes or tags.

    Attributes:
        network: the layers.
        settings: as given.
        vectors: as given.
        labels: as given.

    Raises:
        InputError: settings and vectors do not fit.

    Example:
        >>> from treelax.data.text.vectors import random_vectors
        >>> model = SentenceModel(SentenceSettings(), random_vectors(["dogs", "bark"], 8), ["yes"])
        >>> [said] = model.predict(["Dogs bark."])
        >>> said.label, said.words
        ('yes', (('Dogs', 'bark', '.'),))
    """

    def __init__(self, settings: SentenceSettings, vectors: Vectors, labels: Sequence[str]) -> None:
        super().__init__()
        self.settings = settings
        self.vectors = vectors
        self.labels = tuple(labels)
        self.network = new_network(settings, vectors.matrix, len(self.labels))

    def forward(self, *texts: Any, **options: Any) -> Tensor:
        """Logits, as the network gives them; see `treelax.tasks.text.model`."""
        logits: Tensor = self.network(*texts, **options)
        return logits

    # ------------------------------------------------------------------ asking

    def predict(
        self,
        texts: Iterable[Any],
        *,
        soft: bool = False,
        batch_size: int = 64,
        tokens: bool | None = None,
    ) -> list[Prediction]:
        """Label texts and find their trees.

        Args:
            texts: for classes and tags a text each, for pairs two texts each. A text is a string, a
                list of its words, or a `treelax.data.conllu.Sentence`, whose heads are used if the
                model takes given trees, which then every text needs.
            soft: predict with relaxed trees; then heads are those of the tree with the most weight.
            batch_size: the most examples at a time; long texts come in smaller batches.
            tokens: strings are words with spaces between, not to be tokenised; by default as the
                model was trained.

        Returns:
            A prediction for each, in their order; without a label where a text has no words.

        Raises:
            InputError: a text is none, or there are too few or too many, or it lacks a tree that
                the model takes; the message names it.
            DataError: a text is too long for a transformer, or its heads form no tree.
            BackendError: tokenising needs the nltk library and it is not installed.

        Example:
            See `SentenceModel`.
        """
        return list(self.stream(texts, soft=soft, batch_size=batch_size, tokens=tokens))

    def stream(
        self,
        texts: Iterable[Any],
        *,
        soft: bool = False,
        batch_size: int = 64,
        tokens: bool | None = None,
    ) -> Iterator[Prediction]:
        """Label any number of texts as `predict` does, in bounded memory.

        Args:
            texts: as for `predict`; read as predictions are asked for, 32 batches ahead.
            soft: as for `predict`.
            batch_size: as for `predict`.
            tokens: as for `predict`.

        Returns:
            An iterator over the predictions, in the order of the texts.

        Raises:
            InputError: as `predict`.
            DataError: as `predict`.
            BackendError: as `predict`.

        Example:
            >>> from treelax.data.text.vectors import random_vectors
            >>> model = SentenceModel(SentenceSettings(), random_vectors(["dogs"], 8), ["yes"])
            >>> next(model.stream(iter(["dogs", ""]))).label
            'yes'
        """
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise InputError(f"texts: received {_short(texts)}; expected a list of texts")
        as_words = self.settings.tokens if tokens is None else tokens
        return predict_words(
            self.network,
            self.settings,
            self.network.encoder.read(self.vectors),
            self.labels,
            (self._example(item, f"texts[{i}]", as_words) for i, item in enumerate(texts)),
            soft=soft,
            batch_size=batch_size,
        )

    def _example(self, item: Any, where: str, tokens: bool) -> Example:
        if self.settings.texts == 1:
            return (_words(item, where, tokens),)
        if not isinstance(item, list | tuple) or len(item) != self.settings.texts:
            raise InputError(
                f"{where}: received {_short(item)}; expected two texts: (first, second)"
            )
        return [_words(text, where, tokens) for text in item]

    # ------------------------------------------------------------------ loading and saving

    @classmethod
    def from_run(
        cls, path: str | os.PathLike[str], *, device: str | torch.device = "cpu"
    ) -> SentenceModel:
        """The best model of a run.

        Args:
            path: the folder of the run; the files that it was trained on are not needed.
            device: where to put it.

        Returns:
            The model, in evaluation mode. No random number is drawn.

        Raises:
            InputError: there is no run, it has no model yet, or it is of another task.
            CheckpointError: a file is damaged or of another version.

        Example:
            >>> SentenceModel.from_run("nowhere")
            Traceback (most recent call last):
            ...
            treelax.errors.InputError: nowhere: does not exist; expected the folder of a run
        """
        return cls._restored(load_run(Path(path))).to(device)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str],
        *,
        revision: str | None = None,
        device: str | torch.device = "cpu",
    ) -> SentenceModel:
        """Load a model that `save_pretrained` saved, or that of a run.

        Args:
            name: the folder of a saved model or of a run, or OWNER/NAME of a model on the Hugging
                Face hub, for which the huggingface_hub library is needed.
            revision: on the hub, a branch, tag or commit; the newest by default.
            device: where to put it.

        Returns:
            The model, in evaluation mode. No random number is drawn.

        Raises:
            InputError: there is no such folder or model, or it is of another task.
            BackendError: a model on the hub is meant and the library is not installed.
            CheckpointError: a file is missing, damaged or of another version, or the files are not
                of one model.

        Example:
            See `save_pretrained`.
        """
        folder = Path(name)
        if not folder.exists() and looks_like_hub_name(str(name)):
            folder = fetch_folder(str(name), FILES, revision=revision)
        return cls._restored(load_folder(folder)).to(device)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Save the model as a folder that `from_pretrained` loads.

        Args:
            folder: made with its parents if it does not exist; an older model in it is replaced.

        Raises:
            InputError: the folder holds a run, or is a file.
            CheckpointError: a file cannot be written.

        Example:
            >>> import tempfile
            >>> from treelax.data.text.vectors import random_vectors
            >>> model = SentenceModel(SentenceSettings(), random_vectors(["dogs"], 8), ["yes"])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model.save_pretrained(folder)
            ...     SentenceModel.from_pretrained(folder).labels
            ('yes',)
        """
        weights = {k: v for k, v in self.network.state_dict().items() if k != LEARNED}
        save_folder(Path(folder), self.settings, self._learned_vectors(), self.labels, weights)

    def push_to_hub(
        self, name: str, *, private: bool = False, message: str = "A treelax sentence model"
    ) -> str:
        """Publish the model on the Hugging Face hub, where `from_pretrained` finds it.

        Args:
            name: OWNER/NAME of the repository, which is made if it does not exist.
            private: make it a private one, if it is made.
            message: of the commit.

        Returns:
            Where the commit can be seen.

        Raises:
            BackendError: the huggingface_hub library is not installed.
            InputError: the hub refuses, or cannot be reached.
        """
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return publish_folder(name, Path(folder), private=private, message=message)

    @classmethod
    def _restored(cls, saved: SavedSentences) -> SentenceModel:
        try:
            with torch.random.fork_rng(devices=[]):  # what is drawn here is overwritten at once
                model = cls(saved.settings, saved.vectors, saved.labels)
            new = model.network.state_dict()
            # a saved model has its learned vectors as rows of the matrix, where they start from
            learned = {LEARNED: new[LEARNED]} if LEARNED in new else {}
            model.network.load_state_dict(learned | dict(saved.weights))
        except (InputError, RuntimeError) as error:
            if saved.settings.model.pretrained is not None and isinstance(error, TreelaxError):
                raise  # of the transformer
            raise misfit(saved.file, error) from error
        return model.eval()

    def _learned_vectors(self) -> Vectors:
        """The vectors with their learned rows as they are now."""
        embedding = self.network.encoder.embedding
        if embedding.learned is None:
            return self.vectors
        matrix = embedding.table.detach().cpu().clone()
        matrix[1 : len(embedding.learned) + 1] = embedding.learned.detach()
        return Vectors(matrix, self.vectors.known, unknown=self.vectors.unknown)


def _words(text: Any, where: str, tokens: bool) -> Sequence[str] | Sentence:
    if isinstance(text, Sentence):
        return text
    if isinstance(text, str):
        if not text or text.isspace():
            return ()
        return words_of(Record((text,), None, 1, tokens), 0)
    if not isinstance(text, list | tuple):
        raise InputError(
            f"{where}: received {_short(text)}; expected a text or a list of its words"
        )
    for word in text:
        if not isinstance(word, str) or not word or " " in word:
            raise InputError(
                f"{where}: received {_short(word)} as a word; expected words without spaces, or "
                "the text as one string"
            )
    return text


def _short(value: object) -> str:
    written = repr(value)
    return written if len(written) <= SHOWN else f"{written[:SHOWN]}…"
