"""Cutting text into words as the Penn Treebank does, through the nltk library.

Word vectors and the data sets of the paper are tokenised that way. A period is cut off only at the
end of a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from treelax.errors import BackendError

if TYPE_CHECKING:
    from treelax.data.text.records import Record

__all__ = ["VERSION", "tokenize", "words_of"]

VERSION = 3  # raised when the same text is cut otherwise
_TYPOGRAPHIC = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2026": "..."}
)

# what the library's other rules look for, contractions ignoring case in all of Unicode, where a
# dotless i is an i; and separators that Python takes for white space but the library does not
_NEEDS_LIBRARY = re.compile(
    r"""["'`;@#$%&()\[\]{}<>\x1c-\x1f\x85]|--|\.\.\.|cannot|gimme|gonna|gotta|lemme|wanna""",
    re.IGNORECASE,
)
# all that most sentences need, in the order of the library: the same result, faster
_COMMON_RULES = (
    (re.compile(r"([:,])([^\d])"), r" \1 \2"),
    (re.compile(r"([:,])$"), r" \1 "),
    (re.compile(r"([^.])\.\s*$"), r"\1 . "),
    (re.compile(r"[?!]"), r" \g<0> "),
)


def tokenize(text: str) -> list[str]:
    r"""Cut a text into words as the Penn Treebank does.

    The words are those of nltk's ``TreebankWordTokenizer``, for a text with a typewriter's quotes,
    apostrophes and ellipses. The text should be one sentence.

    Raises:
        BackendError: the text needs the nltk library and it is not installed.

    Example:
        >>> tokenize("A man rides a horse.")
        ['A', 'man', 'rides', 'a', 'horse', '.']
        >>> tokenize("“I can’t…” he said.")
        ['``', 'I', 'ca', "n't", '...', "''", 'he', 'said', '.']
    """
    text = text.translate(_TYPOGRAPHIC)
    if _NEEDS_LIBRARY.search(text) is not None:
        return _treebank()(text)
    for pattern, cut in _COMMON_RULES:
        text = pattern.sub(cut, text)
    return text.split()


def words_of(record: Record, i: int) -> list[str]:
    """The words of one text of a record, none empty: its tokens, or what `tokenize` gives."""
    if not record.tokens:
        return tokenize(record.texts[i])
    return [word for word in record.texts[i].split(" ") if word]


@cache
def _treebank() -> Callable[[str], list[str]]:
    try:
        from nltk.tokenize.treebank import TreebankWordTokenizer
    except ImportError as error:
        raise BackendError(
            "tokenising raw text needs the nltk library, which is not installed: "
            'pip install "treelax[data]", or give tokenised text'
        ) from error
    return TreebankWordTokenizer().tokenize
