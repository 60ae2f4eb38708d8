"""Trained sentence models that can be asked, saved, passed on and loaded."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from treelax.data.conllu import Sentence
from treelax.data.text.ptb import one_word, spaced_words
from treelax.data.text.records import Record
from treelax.data.text.tokenizer import words_of
from treelax.data.text.vectors import Vectors
from treelax.errors import InputError, TreelaxError, short
from treelax.nn.modes import evaluating
from treelax.tasks.base import (
    Answer,
    Asking,
    Example,
    Examples,
    Prediction,
    Progress,
    Source,
    Table,
    Text,
    TrainedParser,
)
from treelax.tasks.text.config import SentenceSettings, TextConfig
from treelax.tasks.text.hub import fetch_folder, looks_like_hub_name, publish_folder
from treelax.tasks.text.inputs import own_examples, read_examples
from treelax.tasks.text.model import NETWORKS
from treelax.tasks.text.model_files import SavedSentences, load_folder, save_folder
from treelax.tasks.text.new_words import THE_MODEL, VectorFiles, look_up, vector_files
from treelax.tasks.text.origins import Origin, read_origins, trained_with
from treelax.tasks.text.prediction import (
    ALONE,
    Predictor,
    Texts,
    known_spellings,
    sentences_of,
    words_in,
)
from treelax.tasks.text.subwords import SubwordTable
from treelax.training.checkpoint import misfit
from treelax.training.run import CONFIG, Run

__all__ = ["LabelAccuracy", "Prediction", "SentenceModel", "SentenceSettings"]

LEARNED = "encoder.embedding.learned"  # saved as rows of the word vectors, not as a weight
MANY = 10  # one in so many words may be unknown before it is told
OUTSIDE = 1e4  # what an arc outside a given tree lacks
WINDOW = 32  # batches that are read ahead, to be sorted by length
GROWING = Lock()  # word vectors, which several threads may ask for


class SentenceModel(TrainedParser, nn.Module):
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
        vectors: as given, and what was looked up since.
        labels: as given.
        vector_files: where words that it does not know are looked up; none unless it was loaded so.

    Raises:
        InputError: settings and vectors do not fit.

    Example:
        >>> from treelax.data.text.vectors import random_vectors
        >>> model = SentenceModel(SentenceSettings(), random_vectors(["dogs", "bark"], 8), ["yes"])
        >>> [said] = model.predict(["Dogs bark."])
        >>> said.label, said.words
        ('yes', (('Dogs', 'bark', '.'),))
    """

    sample = ("the old cat watched a small bird", "a cat saw a bird")

    def __init__(self, settings: SentenceSettings, vectors: Vectors, labels: Sequence[str]) -> None:
        super().__init__()
        self.settings = settings
        self.vectors = vectors
        self.labels = tuple(labels)
        self.name = THE_MODEL  # in messages
        self.task, self.text, self.null = settings.kind, settings.text, settings.null
        self.is_tagger, self.trees = settings.kind == "tag", settings.model.trees
        self.takes_vectors = bool(settings.vectors)
        self.tag_column = settings.label or "UPOS"
        self.vector_files: tuple[Path, ...] = ()
        self.config: TextConfig | None = None  # of the run that it is from
        self.origins: Mapping[str, Origin] = {}  # the files of that run
        self._not_found: set[str] = set()  # in the files of vectors
        network = NETWORKS[settings.kind]
        self.network = network(settings.model, vectors.matrix, len(self.labels))
        self.tree = self.network.encoder.tree

    def forward(self, *texts: Any, **options: Any) -> Tensor:
        """Logits, as the network gives them; see `treelax.tasks.text.model`."""
        return self.network(*texts, **options)

    # ------------------------------------------------------------------ asking

    def predict(self, texts: Iterable[Any], **options: Unpack[Asking]) -> list[Prediction]:
        """Label texts and find their trees.

        A space within a word of a list becomes a no-break space, as in training. Words may be a tuple
        too, but not one of two strings with white space in one of them, which reads as a pair of texts.
        With ``soft`` the heads are those of the tree whose arcs weigh most.

        See `treelax.tasks.base.TrainedParser.stream` for the arguments.
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

        Texts are read 32 batches ahead. Where new words are looked up in files, these are read again
        for every 32 batches that have some; `look_up` with the words of all texts reads them once.
        """
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}; expected at least 1")
        return self._said(self._examples(texts, tokens), self._predictor(soft, scores), batch_size)

    def _said(
        self, examples: Iterator[Texts], predictor: Predictor, batch_size: int
    ) -> Iterator[Prediction]:
        passed = 0
        while window := list(islice(examples, WINDOW * batch_size)):
            self.look_up(_all_words(window))
            yield from predictor.predict(window, batch_size, passed)
            passed += len(window)

    def _predictor(self, soft: bool = False, scores: bool = False) -> Predictor:
        table = self.network.encoder.read(self.vectors)
        return Predictor(self.network, self.settings, table, self.labels, soft, scores)

    def _examples(self, texts: Iterable[Any], tokens: bool | None) -> Iterator[Texts]:
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise InputError(f"texts: received {short(texts)}; expected a list of texts")
        as_words = self.settings.tokens if tokens is None else tokens
        return (self._example(item, f"texts[{i}]", as_words) for i, item in enumerate(texts))

    def _example(self, item: Any, where: str, tokens: bool) -> Texts:
        if self.settings.texts == 1:
            return (_words(item, where, tokens),)
        if not isinstance(item, list | tuple) or len(item) != self.settings.texts:
            raise InputError(
                f"{where}: received {short(item)}; expected two texts: (first, second)"
            )
        return [_words(text, where, tokens) for text in item]

    def look_up(self, words: Iterable[str]) -> tuple[int, int]:
        """Look up words that the model does not know in the files that it was loaded with.

        Their vectors are kept. `predict` does this by itself. Words that are not found share a hundred
        vectors, as without the files.

        Returns:
            How many different words were looked for, and how many of them were found.
        """
        if not self.vector_files:
            return 0, 0
        with GROWING, torch.inference_mode(False):
            asked = dict.fromkeys(known_spellings(self.settings, words))
            new = [w for w in asked if w not in self.vectors.known and w not in self._not_found]
            if not new:
                return 0, 0
            rows, added = look_up(self.vectors, self.vector_files, new, self.settings, self.name)
            # words come last: other threads may ask for the rows of those that there are
            self.network.encoder.embedding.append(added)
            self.vectors.matrix = torch.cat([self.vectors.matrix, added])
            self.vectors.known.update(rows)
            self._not_found.update(word for word in new if word not in rows)
        return len(new), len(rows)

    # ------------------------------------------------------------------ as a trained parser

    def words(self, text: str) -> tuple[str, ...]:
        """A text as the model cuts it; a word may hold no white space, as in training."""
        return tuple(words_in(_words(" ".join(text.split()), "text", self.settings.tokens)))

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
        if MANY * unknown <= len(spelled):
            return None
        options = " ".join(f"--vectors {name}" for name in self.settings.vectors)
        return (
            f"note: {unknown:,} of {len(spelled):,} different words are unknown to the model and share "
            f"a hundred vectors; look them up with {options}, as in training"
        )

    def trained_with(self, file: Path) -> str | None:
        """What a file was to the run that the model is from."""
        data = None if self.config is None else self.config.data
        return None if data is None else trained_with(file, self.origins, data)

    def evaluate(
        self, examples: Sequence[Example], *, progress: Progress | None = None
    ) -> LabelAccuracy:
        """Accuracy with discrete and with soft trees."""
        given = [each.texts[0] if self.settings.texts == 1 else each.texts for each in examples]
        said = zip(self.stream(given), self.stream(given, soft=True), examples, strict=True)
        right = soft = count = done = 0
        for hard, other, example in said:
            several = [
                [label] if isinstance(label, str) else label or ()
                for label in (example.label, hard.label, other.label)
            ]
            for wanted, own, relaxed in zip(*several, strict=False):
                count, right, soft = count + 1, right + (own == wanted), soft + (relaxed == wanted)
            done += sum(map(len, example.texts))
            if progress is not None:
                progress(done)
        if not count:
            raise InputError("examples: received none with a label; expected some to compare with")
        return LabelAccuracy(len(examples), count, 100 * right / count, 100 * soft / count)

    @torch.no_grad()
    def arc_scores(self, words: Sequence[str]) -> Tensor:
        """The scores of one text, NULL in front if the model has one."""
        self.require_scores()
        device = next(self.network.parameters()).device
        with ALONE, evaluating(self.network):
            table = self.network.encoder.read(self.vectors)
            if isinstance(table, SubwordTable):
                table.forget()
            batch = sentences_of(self.settings, table, [words], device)
            return self.network.encoder.scores(batch)[0].float().cpu()

    @torch.no_grad()
    def answer(self, texts: Sequence[Sequence[str]], trees: Sequence[Tensor]) -> Answer | None:
        """The label of a text or of two with its probability, or a tag for every word."""
        if self.tree is None:
            return None
        if len(texts) < self.settings.texts:
            return Answer("No label yet: this model labels two texts together.")
        forced = _forcing(trees)
        words = [list(text) for text in texts]
        with ALONE:
            hook = self.tree.scorer.register_forward_hook(lambda *_: forced)
            try:
                [said] = self.predict([words if len(words) == 2 else words[0]], tokens=True)
            finally:
                hook.remove()
        if isinstance(said.label, tuple):
            return Answer("Tags stand below the words.", list(map(str, said.label)))
        share = said.probability if isinstance(said.probability, float) else 0.0
        return Answer(f"{said.label} ({100 * share:.0f} %)")

    # ------------------------------------------------------------------ loading and saving

    @classmethod
    def from_run(
        cls,
        path: str | os.PathLike[str],
        *,
        device: str | torch.device = "cpu",
        vectors: VectorFiles | None = None,
    ) -> SentenceModel:
        """The best model of a run; see `from_pretrained`."""
        return cls.from_pretrained(path, device=device, vectors=vectors)

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
        return cls._restored(load_folder(folder), vectors, str(name), folder).to(device)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Save the model as a folder that `from_pretrained` loads.

        Its words are saved with their vectors, those that were looked up since it was loaded too, so
        they need no file any more; the names of the files are saved, not what else is in them.

        Args:
            folder: made with its parents if it does not exist; an older model in it is replaced.

        Raises:
            InputError: the folder holds a run or a model of another program, or is a file.
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
        """Publish the model as OWNER/NAME on the Hugging Face hub, where `from_pretrained` finds it.

        Returns where the commit can be seen.
        """
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return publish_folder(name, Path(folder), private=private, message=message)

    @classmethod
    def _restored(
        cls, saved: SavedSentences, vectors: VectorFiles | None, called: str, folder: Path
    ) -> SentenceModel:
        files = vector_files(vectors, saved.settings, called)
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
        model.vector_files, model.name = files, called
        if (folder / CONFIG).is_file():
            model.config, model.origins = Run.open(folder).config(TextConfig), read_origins(folder)
        return model.eval()

    def _learned_vectors(self) -> Vectors:
        """The vectors with their learned rows as they are now."""
        embedding = self.network.encoder.embedding
        if embedding.learned is None:
            return self.vectors
        matrix = embedding.table.detach().cpu().clone()
        matrix[1 : len(embedding.learned) + 1] = embedding.learned.detach()
        return Vectors(matrix, self.vectors.known, unknown=self.vectors.unknown)


@dataclass(frozen=True)
class LabelAccuracy:
    """Accuracy of a model's labels, in percent; a tagger's are of words."""

    examples: int
    labels: int
    accuracy: float
    soft_accuracy: float

    def record(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return asdict(self)

    def tables(self, title: str) -> list[Table]:
        """All figures, for people."""
        row = [title, f"{self.labels:,}", f"{self.accuracy:.2f}", f"{self.soft_accuracy:.2f}"]
        return [Table(["accuracy, %", "labels", "discrete trees", "soft trees"], [row])]


def _forcing(trees: Sequence[Tensor]) -> Tensor:
    """Scores whose best trees are these; a model with another rule of roots takes the nearest."""
    size = max(map(len, trees))
    scores = torch.zeros(len(trees), size, size)
    for own, tree in zip(scores, trees, strict=True):
        own[: len(tree), : len(tree)] = OUTSIDE * (tree - 1)
    return scores


def _all_words(examples: Iterable[Texts]) -> Iterator[str]:
    for example in examples:
        for text in example:
            yield from words_in(text)


def _words(text: Any, where: str, tokens: bool) -> Text:
    if isinstance(text, Sentence):
        return replace(text, words=tuple(map(one_word, text.words)))
    if isinstance(text, str):
        if not text or text.isspace():
            return ()
        return words_of(Record((spaced_words(text) if tokens else text,), None, 1, tokens), 0)
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
