"""Words and trees as the Penn Treebank writes them."""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import accumulate

from treelax.errors import DataError, short

_BETWEEN_WORDS = re.compile(r"[^\S\u00a0\u2007\u202f]+")  # all white space but what holds together
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
QUOTES = {"``": '"', "''": '"'}
_BRACKET = re.compile(r"(?<!\S)-(?:[LR][RSC]B|[lr][rsc]b)-(?!\S)")
# white space other than the plain space belongs to a word: SST has "2\u00a01\\/2" as one
_OPEN = r"\([0-9]++(?=[ ()]|$) *+"
_WORD = r"[^ ()]++"
# opening brackets, a word, closing brackets, and so on: a tree if the brackets balance
_TREE = re.compile(rf" *+(?:(?:{_OPEN})++{_WORD}(?: *+\))++ *+)++")
_LEAF = re.compile(rf"({_WORD}) *+\)")


def unescape(text: str) -> str:
    """Undo the escapes of the Penn Treebank in words with spaces between."""
    text = text.replace("\\/", "/").replace("\\*", "*")
    if "B-" in text or "b-" in text:
        text = _BRACKET.sub(lambda match: BRACKETS[match.group().upper()], text)
    return text


def plain_word(word: str) -> str:
    """A word as people write it, which is how word vectors and transformers know it."""
    return QUOTES.get(word) or unescape(word)


def single_spaces(text: str, without: Container[str] = ("",)) -> str:
    """Words with single spaces between; white space of other kinds is left alone."""
    return " ".join([word for word in text.split(" ") if word not in without])


def spaced_words(text: str) -> str:
    """Words with single spaces between, of a text that has any white space between them."""
    return _BETWEEN_WORDS.sub(" ", text).strip(" ")


def one_word(word: str) -> str:
    """A word with no-break spaces for the spaces in it, as all readers of words give it."""
    return word.replace(" ", "\u00a0")


def labelled_tree(text: str, where: str) -> tuple[str, str]:
    """The label at the root of a tree of the Stanford Sentiment Treebank, and its words."""
    depths = list(accumulate((c == "(") - (c == ")") for c in text.strip(" ")))
    if not _TREE.fullmatch(text) or depths[-1] != 0 or 0 in depths[:-1]:
        raise DataError(
            f"{where}: received {short(text)}; expected one tree, as in (3 (2 It) (4 works))"
        )
    label = text[text.index("(") + 1 :].partition(" ")[0].partition("(")[0]
    return label, unescape(" ".join(_LEAF.findall(text)))
