"""What trained models of sentences share: texts to predictions, new words, the files of a run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

from torch import Tensor

from treelax.apps.data.batching import MOST_ARCS, length_batches
from treelax.apps.data.text.tokenizer import Cut, tokenize
from treelax.apps.tasks.base import Example, Prediction, Text, TrainedParser
from treelax.apps.tasks.sentences.inputs import text_words, words_in
from treelax.apps.tasks.sentences.origins import Origin, TrainingFile, trained_with
from treelax.apps.tasks.sentences.word_vectors import GROWING, WordVectors
from treelax.errors import InputError, short
from treelax.nn.transformer import SubwordTransformer

WINDOW = 32  # batches that are read ahead, to be sorted by length
Texts = tuple[Text, ...]  # of one example


class SentenceParser(TrainedParser):
    """A trained model of sentences."""

    cut: Cut = staticmethod(tokenize)  # makes words of a text
    tokens: bool = False  # strings are tokenised unless asked otherwise
    word_vectors: WordVectors | None = None  # given to it in training
    transformer: SubwordTransformer | None = None  # its table of sub-words grows with every text
    origins: Mapping[str, Origin]  # the files of its run
    most_arcs: int = MOST_ARCS  # of the trees in a batch
    unknown_share: str = "have no vector"  # what becomes of unknown words, for messages

    @abstractmethod
    def _check(self, texts: Texts, where: str) -> None:
        """Refuse texts that the model cannot take."""

    @abstractmethod
    def _predict(self, examples: list[Texts], *args: Any, **options: Any) -> list[Prediction]:
        """The predictions for a batch of examples, none of them empty."""

    @abstractmethod
    def _has_vector(self, word: str) -> bool:
        """Whether a word has a vector."""

    @abstractmethod
    def training_files(self) -> Iterable[TrainingFile]:
        """The files that its config names."""

    def predict(self, texts: Iterable[Any], **options: Any) -> list[Prediction]:
        """Label texts and find their trees; see `treelax.apps.tasks.base.TrainedParser.stream`.

        A space within a word of a list becomes a no-break space, as in training. With ``soft``, heads
        are those of the tree with the largest total weight.
        """
        if self.vector_files and not isinstance(texts, str):  # one reading of them for all texts
            texts = list(texts)
            self.look_up(_all_words(self._examples(texts, options.get("tokens"))))
        return list(self.stream(texts, **options))

    def stream(
        self,
        texts: Iterable[Any],
        *,
        batch_size: int = 64,
        tokens: bool | None = None,
        **options: Any,
    ) -> Iterator[Prediction]:
        """Label any number of texts as `predict` does, in bounded memory.

        Texts are read 32 batches ahead. Files of word vectors are read again for every 32 batches with
        new words; to read them once, call `look_up` with the words of all texts.
        """
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}; expected at least 1")
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise InputError(f"texts: received {short(texts)}; expected a list of texts")
        return self._stream(texts, batch_size, tokens, **options)

    def _stream(
        self, texts: Iterable[Any], size: int, tokens: bool | None, **options: Any
    ) -> Iterator[Prediction]:
        examples, first = self._examples(texts, tokens), 0
        lock = nullcontext() if self.transformer is None else GROWING
        bounds = {"most_arcs": self.most_arcs, "most_sentences": size, "texts": len(self.text)}
        while window := list(islice(examples, WINDOW * size)):
            self.look_up(_all_words(window))
            with lock:
                for number, example in enumerate(window, first):
                    self._check(example, f"texts[{number}]")
            words = [tuple(map(words_in, example)) for example in window]
            done = [Prediction(texts) for texts in words]  # all there is for empty texts
            longest = {i: max(map(len, texts)) + 1 for i, texts in enumerate(words) if all(texts)}
            for places in length_batches(longest, **bounds):
                with lock:
                    predicted = self._predict([window[place] for place in places], **options)
                for place, prediction in zip(places, predicted, strict=True):
                    done[place] = prediction
            yield from done
            first += len(window)

    def _examples(self, texts: Iterable[Any], tokens: bool | None) -> Iterator[Texts]:
        as_words, count = self.tokens if tokens is None else tokens, len(self.text)
        for i, item in enumerate(texts):
            where = f"texts[{i}]"
            if count > 1 and not (isinstance(item, list | tuple) and len(item) == count):
                raise InputError(
                    f"{where}: received {short(item)}; expected two texts: (first, second)"
                )
            given = (item,) if count == 1 else item
            yield tuple(text_words(text, where, as_words, self.cut) for text in given)

    def check(self, example: Example, where: str) -> None:
        """Refuse an example that the model cannot take."""
        with GROWING:
            self._check(example.texts, where)

    def words(self, text: str) -> tuple[str, ...]:
        """A text as the model cuts it; a word may hold no white space, as in training."""
        return words_in(text_words(" ".join(text.split()), "text", self.tokens, self.cut))

    def arc_scores(self, text: Text) -> Tensor:
        """The scores of one text, NULL in front if the model has one."""
        self.require_scores()
        example = text if len(self.text) == 1 else [text] * len(self.text)
        [prediction] = self.stream([example], scores=True, tokens=True)
        assert prediction.scores is not None
        return prediction.scores[0]

    # ------------------------------------------------------------------ words and files of training

    @property
    def vector_files(self) -> tuple[Path, ...]:
        """Where unknown words are looked up; none unless it was loaded so."""
        return () if self.word_vectors is None else self.word_vectors.files

    def look_up(self, words: Iterable[str]) -> tuple[int, int]:
        """Look up unknown words in the files that the model was loaded with, and keep their vectors.

        `predict` does this by itself.

        Returns:
            How many different words were looked for, and how many of them were found.
        """
        return (0, 0) if self.word_vectors is None else self.word_vectors.add(self._spelled(words))

    def unknown_words(self, words: Collection[str]) -> str | None:
        """A note on the option that would look them up."""
        if self.word_vectors is None:
            return None
        spelled = set(self._spelled(words))
        unknown = sum(not self._has_vector(word) for word in spelled)
        return self.word_vectors.note(unknown, len(spelled), self.unknown_share)

    def _spelled(self, words: Iterable[str]) -> Iterable[str]:
        """Words as the model spells them."""
        return words

    def trained_with(self, file: Path) -> str | None:
        """What a file was to the run that the model is from."""
        return trained_with(file, self.origins, self.training_files())


def _all_words(examples: Iterable[Texts]) -> Iterator[str]:
    return (word for example in examples for text in example for word in words_in(text))
