"""Cutting text into words as the Penn Treebank does, through the nltk library.

Word vectors and the data sets of the paper are tokenised that way: ``can't`` is ``ca n't``, quotes
are `````` and ``''``, punctuation stands alone. A period is cut off at the end of a text only, so
a text should be one sentence. Typographic quotes, apostrophes and ellipses, which the Penn Treebank
has not got, are taken for those of a typewriter.

The library applies some thirty regular expressions to every text. Most sentences need none of them
except for the final period, and most others those for commas, colons, question and exclamation marks
alone; these are cut here, with the same result and many times faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from treelax.data.text.records import Record
from treelax.errors import BackendError, InputError

__all__ = ["VERSION", "tokenize", "words_of"]

VERSION = 3  # raised when the same text is cut otherwise
_TYPOGRAPHIC = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2026": "..."}
)

# what the library's rules look for, the final period and common marks aside; and separators that
# Python takes for white space but the library's regular expressions do not
_RARE_MARKS = re.compile(r"""["'`;@#$%&()\[\]{}<>\x1c-\x1f\x85]|--|\.\.\.""")
_COMMON_MARKS = re.compile(r"[:,?!]")
# the rules for common marks, in the order of the library: a comma within a number stays there
_COMMON_RULES = (
    (re.compile(r"([:,])([^\d])"), r" \1 \2"),
    (re.compile(r"([:,])$"), r" \1 "),
    (re.compile(r"([^.])\.\s*$"), r"\1 . "),
    (re.compile(r"[?!]"), r" \g<0> "),
)
_CONTRACTIONS = ("cannot", "gimme", "gonna", "gotta", "lemme", "wanna")
# as the library looks for them: ignoring case in all of Unicode, where a dotless i is an i
_ANY_CONTRACTION = re.compile("|".join(_CONTRACTIONS), re.IGNORECASE)


def tokenize(text: str) -> list[str]:
    r"""Cut a text into words as the Penn Treebank does.

    Args:
        text: one sentence.

    Returns:
        Its words, in order, none empty: what nltk's ``TreebankWordTokenizer`` gives, for a text
        with a typewriter's quotes, apostrophes and ellipses.

    Raises:
        InputError: the text is no string.
        BackendError: the text needs the nltk library and it is not installed.

    Example:
        >>> tokenize("A man rides a horse.")
        ['A', 'man', 'rides', 'a', 'horse', '.']
        >>> tokenize('"I can\'t," he said.')
        ['``', 'I', 'ca', "n't", ',', "''", 'he', 'said', '.']
        >>> tokenize("“I can’t…” he said.")
        ['``', 'I', 'ca', "n't", '...', "''", 'he', 'said', '.']
    """
    if not isinstance(text, str):
        raise InputError(f"text: received {type(text).__name__}; expected a string")
    if not text.isascii():
        text = text.translate(_TYPOGRAPHIC)
    if _needs_library(text):
        return _treebank()(text)
    if _COMMON_MARKS.search(text) is not None:
        for pattern, cut in _COMMON_RULES:
            text = pattern.sub(cut, text)
        return text.split()
    text = text.rstrip()
    if text.endswith(".") and not text.endswith(".."):
        return [*text[:-1].split(), "."]
    return text.split()


def words_of(record: Record, i: int) -> list[str]:
    """The words of one text of a record.

    Args:
        record: whose texts are tokenised if ``record.tokens``: then they are cut at spaces and
            nowhere else, for readers put one between words and none into them.
        i: which text, counted from 0.

    Returns:
        The words, none empty.

    Raises:
        InputError: there is no such text.
        BackendError: as `tokenize`.

    Example:
        >>> words_of(Record(("Dogs bark.", "It ca n't ."), "no", 1, tokens=True), 1)
        ['It', 'ca', "n't", '.']
    """
    if not 0 <= i < len(record.texts):
        raise InputError(f"i: received {i}; expected 0 to {len(record.texts) - 1}, a text")
    if not record.tokens:
        return tokenize(record.texts[i])
    words = record.texts[i].split(" ")
    return [word for word in words if word] if "" in words else words


def _needs_library(text: str) -> bool:
    """Whether more than white space, a final period and common marks may have to be cut."""
    if _RARE_MARKS.search(text) is not None:
        return True
    if not text.isascii():
        return _ANY_CONTRACTION.search(text) is not None
    lowered = text.lower()
    return any([word in lowered for word in _CONTRACTIONS])  # a list: faster than a generator


@cache
def _treebank() -> Callable[[str], list[str]]:
    """The library's tokeniser, loaded on first use; it needs no download."""
    try:
        from nltk.tokenize.treebank import TreebankWordTokenizer
    except ImportError as error:
        raise BackendError(
            "tokenising raw text needs the nltk library, which is not installed: "
            'pip install "treelax[data]", or give tokenised text'
        ) from error
    tokenizer: Callable[[str], list[str]] = TreebankWordTokenizer().tokenize
    return tokenizer
