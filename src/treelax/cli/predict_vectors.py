"""Words of new texts that a model does not know: how many, and their vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from treelax.cli.console import error_console
from treelax.cli.predict_inputs import Asked
from treelax.data.text.ptb import one_word
from treelax.tasks.text.prediction import Example, known_spellings, words_in
from treelax.training.pretrained import SentenceModel

__all__ = ["UnknownWords", "look_up"]

SHARE = 10  # of the words, one in so many may be unknown before it is told
MOST = 1_000_000  # different words that are counted: texts without end must fit into memory


def look_up(model: SentenceModel, asked: Iterable[Asked]) -> None:
    """Look up the words of some examples, with one look into the files, and tell how many are found."""
    words = {word for each in asked for word in _words(each.texts)}
    looked_for, found = model.look_up(words)
    if looked_for:
        error_console.print(
            f"word vectors: {found:,} of {looked_for:,} words that are new to the model found"
        )


class UnknownWords:
    """Counts the different words of texts, and those of them that a model does not know."""

    def __init__(self, model: SentenceModel) -> None:
        self.model = model
        # nothing to be told of a model that has no use for files, or has them
        self.counts = bool(model.settings.vectors) and not model.vector_files
        self.seen: set[str] = set()

    def counted(self, asked: Iterable[Asked]) -> Iterator[Asked]:
        """Count the words of examples as they are read."""
        for each in asked:
            if self.counts and len(self.seen) < MOST:
                self.seen.update(known_spellings(self.model.settings, _words(each.texts)))
            yield each

    def line(self) -> str | None:
        """What there is to tell."""
        unknown = sum(word not in self.model.vectors for word in self.seen)
        if SHARE * unknown <= len(self.seen):
            return None
        names = self.model.settings.vectors
        options = " ".join(f"--vectors {name}" for name in names)
        files = "the file" if len(names) == 1 else "the files"
        return (
            f"note: {unknown:,} of {len(self.seen):,} different words are unknown to the model and "
            f"share a hundred vectors; {options}, {files} of its training, looks them up"
        )


def _words(texts: Example) -> Iterator[str]:
    for text in texts:
        yield from map(one_word, words_in(text))
