"""Cutting text into words as the Penn Treebank does, through the nltk library.

Word vectors and the data sets of the paper are tokenised that way. A period is cut off only at the
end of a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from treelax.errors import BackendError, install_command

__all__ = ["VERSION", "tokenize", "typewritten", "written_words"]

Cut = Callable[[str], list[str]]
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


def typewritten(text: str) -> str:
    """A text with a typewriter's quotes, apostrophes and ellipses."""
    return text.translate(_TYPOGRAPHIC)


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
    text = typewritten(text)
    if _NEEDS_LIBRARY.search(text) is not None:
        return _treebank()(text)
    for pattern, cut in _COMMON_RULES:
        text = pattern.sub(cut, text)
    return text.split()


def written_words(text: str) -> list[str]:
    """The words of `tokenize` as the text has them, with its quotes, apostrophes and ellipses.

    >>> written_words("“I can’t…” he said.")
    ['“', 'I', 'ca', 'n’t', '…', '”', 'he', 'said', '.']
    """
    plain = typewritten(text)
    places = [i for i, character in enumerate(text) for _ in character.translate(_TYPOGRAPHIC)]
    words, end, taken = [], 0, 0
    for word in tokenize(text):
        start = end + len(plain[end:]) - len(plain[end:].lstrip())
        # nltk writes `` or '' for a quote
        form = next(form for form in (word, '"', "''") if plain.startswith(form, start))
        end = start + len(form)
        first, taken = max(places[start], taken), places[end - 1] + 1
        words.append(text[first:taken])
    return [word for word in words if word]  # the dots of an ellipsis may be parts of two


@cache
def _treebank() -> Callable[[str], list[str]]:
    try:
        from nltk.tokenize.treebank import TreebankWordTokenizer
    except ImportError as error:
        raise BackendError(
            "tokenising raw text needs the nltk library, which is not installed: "
            f"{install_command('data')}; or give tokenised text"
        ) from error
    return TreebankWordTokenizer().tokenize
