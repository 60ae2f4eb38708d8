"""Trained sentence models: to predict with, to save, to publish and to load."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.text.ptb import one_word, spaced_words
from treelax.apps.data.text.records import Record, words_of
from treelax.apps.data.text.tokenizer import Cut, tokenize
from treelax.apps.data.text.vectors import Vectors
from treelax.apps.tasks.base import (
    Answer,
    Example,
    Examples,
    Label,
    LabelFigures,
    Prediction,
    PredictOptions,
    Progress,
    Source,
    Text,
    TrainedParser,
)
from treelax.apps.tasks.text.config import SentenceSettings, TextConfig
from treelax.apps.tasks.text.hub import fetch_folder, looks_like_hub_name, publish_folder
from treelax.apps.tasks.text.inputs import own_examples, read_examples
from treelax.apps.tasks.text.model import NETWORKS
from treelax.apps.tasks.text.model_files import load_folder, save_folder
from treelax.apps.tasks.text.new_words import THE_MODEL, VectorFiles, add_words, vector_files
from treelax.apps.tasks.text.origins import Origin, read_origins, trained_with
from treelax.apps.tasks.text.prediction import ALONE, Predictor, Texts, known_spellings, words_in
from treelax.apps.training.checkpoint import misfit
from treelax.apps.training.run import CONFIG, Run
from treelax.errors import InputError, TreelaxError, short
from treelax.nn.modes import evaluating

__all__ = ["Prediction", "SentenceModel", "SentenceSettings"]

LEARNED = "encoder.embedding.learned"  # saved as rows of the word vectors, not as a weight
MANY = 10  # one in so many words may be unknown without a message
OUTSIDE = 1e4  # what an arc outside a given tree lacks
WINDOW = 32  # batches that are read ahead, to be sorted by length


class SentenceModel(TrainedParser, nn.Module):
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
        vector_files: where unknown words are looked up; none unless it was loaded so.

    Raises:
        InputError: settings and vectors do not fit.

    Example:
        >>> from treelax.apps.data.text.vectors import random_vectors
        >>> model = SentenceModel(SentenceSettings(), random_vectors(["dogs", "bark"], 8), ["yes"])
        >>> [found] = model.predict(["Dogs bark."])
        >>> found.label, found.words
        ('yes', (('Dogs', 'bark', '.'),))
    """

    sample = ("the old cat watched a small bird", "a cat saw a bird")

    def __init__(self, settings: SentenceSettings, vectors: Vectors, labels: Sequence[str]) -> None:
        super().__init__()
        self.settings, self.vectors, self.labels = settings, vectors, tuple(labels)
        self.name = THE_MODEL  # in messages
        self.task, self.text, self.null = settings.kind, settings.text, settings.null
        self.is_tagger, self.trees = settings.kind == "tag", settings.model.trees
        self.takes_vectors = bool(settings.vectors)
        self.tag_column = settings.label or "UPOS"
        self.vector_files: tuple[Path, ...] = ()
        self.config: TextConfig | None = None  # of the run that it is from
        self.origins: Mapping[str, Origin] = {}  # the files of that run
        self._not_found: set[str] = set()  # in the files of vectors
        self.network = NETWORKS[settings.kind](settings.model, vectors.matrix, len(labels))
        self.tree = self.network.encoder.tree

    def forward(self, *texts: Any, **options: Any) -> Tensor:
        """Logits, as the network gives them; see `treelax.apps.tasks.text.model`."""
        return self.network(*texts, **options)

    def predict(self, texts: Iterable[Any], **options: Unpack[PredictOptions]) -> list[Prediction]:
        """Label texts and find their trees; see `treelax.apps.tasks.base.TrainedParser.stream`.

        A space within a word of a list becomes a no-break space, as in training. With ``soft``, heads
        are those of the tree with the largest total weight.
        """
        if self.vector_files:  # one reading of them for all texts
            texts = list(texts)
            self.look_up(_all_words(list(self._examples(texts, options.get("tokens")))))
        return super().predict(texts, **options)

    def stream(
        self,
        texts: Iterable[Any],
        *,
        soft: bool = False,
        scores: bool = False,
        batch_size: int = 64,
        tokens: bool | None = None,
    ) -> Iterator[Prediction]:
        """Label any number of texts as `predict` does, in bounded memory.

        Texts are read 32 batches ahead. Files of word vectors are read again for every 32 batches with
        new words; to read them once, call `look_up` with the words of all texts.
        """
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}; expected at least 1")
        examples, predictor = self._examples(texts, tokens), self._predictor(soft, scores)

        def predictions() -> Iterator[Prediction]:
            passed = 0
            while window := list(islice(examples, WINDOW * batch_size)):
                self.look_up(_all_words(window))
                yield from predictor.predict(window, batch_size, passed)
                passed += len(window)

        return predictions()

    def _predictor(self, soft: bool = False, scores: bool = False) -> Predictor:
        table = self.network.encoder.read(self.vectors)
        return Predictor(self.network, self.settings, table, self.labels, soft, scores)

    def _examples(self, texts: Iterable[Any], tokens: bool | None) -> Iterator[Texts]:
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise InputError(f"texts: received {short(texts)}; expected a list of texts")
        as_words = self.settings.tokens if tokens is None else tokens

        def example(item: Any, where: str) -> Texts:
            if self.settings.texts == 1:
                item = (item,)
            elif not isinstance(item, list | tuple) or len(item) != 2:
                raise InputError(
                    f"{where}: received {short(item)}; expected two texts: (first, second)"
                )
            return [text_words(text, where, as_words) for text in item]

        return (example(item, f"texts[{i}]") for i, item in enumerate(texts))

    def look_up(self, words: Iterable[str]) -> tuple[int, int]:
        """Look up unknown words in the files that the model was loaded with, and keep their vectors.

        `predict` does this by itself. Words that are not found share a hundred vectors.

        Returns:
            How many different words were looked for, and how many of them were found.
        """
        if not self.vector_files:
            return 0, 0
        spelled, embedding = known_spellings(self.settings, words), self.network.encoder.embedding
        where = (self.vector_files, self.settings, self.name)
        return add_words(spelled, self.vectors, embedding, self._not_found, *where)

    def words(self, text: str) -> tuple[str, ...]:
        """A text as the model cuts it; a word may hold no white space, as in training."""
        return tuple(words_in(text_words(" ".join(text.split()), "text", self.settings.tokens)))

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

    def check(self, example: Example, where: str) -> None:
        """Refuse a text that is too long for a transformer, or without the tree it needs."""
        self._predictor().check(example.texts, where)

    def unknown_words(self, words: Collection[str]) -> str | None:
        """A note on the option that would look them up."""
        if not self.takes_vectors or self.vector_files:
            return None
        spelled = set(known_spellings(self.settings, words))
        unknown = sum(word not in self.vectors for word in spelled)
        return unknown_note(unknown, len(spelled), "share a hundred vectors", self.settings.vectors)

    def trained_with(self, file: Path) -> str | None:
        """What a file was to the run that the model is from."""
        if self.config is None:
            return None
        return trained_with(file, self.origins, self.config.data)

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
    def arc_scores(self, text: Text) -> Tensor:
        """The scores of one text, NULL in front if the model has one."""
        self.require_scores()
        with ALONE, evaluating(self.network):
            [batch] = self._predictor().batches([[text]])
            return self.network.encoder.scores(batch)[0].float().cpu()

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
        with ALONE:
            hook = self.tree.scorer.register_forward_hook(lambda *_: forced)
            try:
                [prediction] = self.predict([words if len(words) == 2 else words[0]], tokens=True)
            finally:
                hook.remove()
        if isinstance(prediction.label, tuple):
            return Answer("Tags stand below the words.", list(map(str, prediction.label)))
        assert isinstance(prediction.probability, float)
        return Answer(f"{prediction.label} ({100 * prediction.probability:.0f} %)")

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
        folder = Path(name)
        if not folder.exists() and looks_like_hub_name(str(name)):
            folder = fetch_folder(str(name), revision=revision)
        saved = load_folder(folder)
        files = vector_files(vectors, saved.settings, str(name))
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
        model.vector_files, model.name = files, str(name)
        if (folder / CONFIG).is_file():
            model.config, model.origins = Run.open(folder).config(TextConfig), read_origins(folder)
        return model.eval().to(device)

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


def unknown_note(unknown: int, words: int, fate: str, files: Sequence[str]) -> str | None:
    """A sentence for people if many of different words are unknown: what becomes of them."""
    if MANY * unknown <= words:
        return None
    options = " ".join(f"--vectors {name}" for name in files)
    return (
        f"note: {unknown:,} of {words:,} different words are unknown to the model and {fate}; look "
        f"them up with {options}, as in training"
    )


def _all_words(examples: Iterable[Texts]) -> Iterator[str]:
    return (word for example in examples for text in example for word in words_in(text))


def text_words(text: Any, where: str, tokens: bool, cut: Cut = tokenize) -> Text:
    """The words of a text that is a string, a list of words or a sentence."""
    if isinstance(text, Sentence):
        spaced = " " in "".join(text.words)
        return replace(text, words=tuple(map(one_word, text.words))) if spaced else text
    if isinstance(text, str):
        if not text or text.isspace():
            return ()
        return words_of(Record((spaced_words(text) if tokens else text,), None, 1, tokens), 0, cut)
    if not isinstance(text, list | tuple):
        raise InputError(f"{where}: received {short(text)}; expected a text or a list of its words")
    for word in text:
        if not isinstance(word, str) or not word.strip():
            raise InputError(
                f"{where}: received {short(word)} as a word; expected words, or the text as one "
                "string"
            )
    # white space between words, not only a space that holds one together
    if isinstance(text, tuple) and len(text) == 2 and any(" " in spaced_words(t) for t in text):
        raise InputError(
            f"{where}: received {short(text)}, which reads as a pair of texts; expected one text, as a "
            "string or a list of its words"
        )
    return list(map(one_word, text))


def load(
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
