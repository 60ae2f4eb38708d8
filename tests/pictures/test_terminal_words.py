"""Drawn trees: words that can do no harm, wrong arguments, streams by their encoding."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy
import pytest
import torch
from drawings import MAX, MAX_FOUND, MAX_GOLD

from treelax.errors import InputError
from treelax.pictures.terminal import draw_tree, supports_unicode

# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("word", "shown", "in_ascii"),
    [
        ("a\x1b[2Jb", "a�[2Jb", "a?[2Jb"),
        ("a\nb\tc\r", "a�b�c�", "a?b?c?"),
        ("a\u202eb", "ab", "ab"),  # would turn the direction of writing
        ("\ud800", "�", "?"),
        ("\u2028", "�", "?"),
        ("", "_", "_"),
        ("e\u0301te\u0301", "été", "\\xe9t\\xe9"),
        ("❤\ufe0f", "❤", "\\u2764"),
    ],
)
def test_words_cannot_harm_the_terminal(word: str, shown: str, in_ascii: str) -> None:
    assert draw_tree([word], [0]).splitlines()[-1] == shown
    assert draw_tree([word], [0], ascii=True).splitlines()[-1] == in_ascii


def test_marks_without_a_width_of_their_own() -> None:
    word = "q\u0302" * 4  # there is no single character for it
    assert draw_tree([word, "z"], [0, 1]) == f" ╷\n │ ╭─╮\n ▼ │ ▼\n{word} z"


# ------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    "heads",
    [torch.tensor([2, 0]), torch.tensor([2, 0], dtype=torch.int8), numpy.array([2, 0]), (2, 0)],
)
def test_heads_of_any_kind(heads: Sequence[int]) -> None:
    assert draw_tree(["Dogs", "bark"], heads, gold=heads).endswith("2 of 2 arcs right")


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([0], "received 1; expected one for each of the 2 words"),
        ([0, 1, 1], "received 3; expected one for each of the 2 words"),
        ([3, 0], "word 1 has head 3; expected one of the positions 0 to 2 other than 1 itself"),
        ([0, -1], "word 2 has head -1; expected one of the positions 0 to 2"),
        ([0, 2], "word 2 has head 2; expected one of the positions 0 to 2 other than 2 itself"),
        ([0, 1.0], "word 2 has head 1.0"),
        ([0, True], "word 2 has head True"),
        ([0, "1"], "word 2 has head '1'"),
        ([0, None], "word 2 has head None"),
        (torch.tensor([0.0, 1.0]), "word 1 has head 0.0"),
        (torch.tensor([[0, 1]]), r"received shape \(1, 2\); expected \(n,\)"),
        (torch.tensor(0), r"received shape \(\); expected \(n,\)"),
    ],
)
def test_wrong_heads(heads: Sequence[int], message: str) -> None:
    with pytest.raises(InputError, match="^heads: " + message):
        draw_tree(["Dogs", "bark"], heads)
    with pytest.raises(InputError, match="^gold: " + message):
        draw_tree(["Dogs", "bark"], [2, 0], gold=heads)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("Dogs bark", "received one string; expected a sequence with a string a word"),
        (["Dogs", 2], "word 2 is 2; expected a string"),
        ([b"Dogs", b"bark"], "word 1 is b'Dogs'; expected a string"),
    ],
)
def test_words_that_are_none(words: Sequence[str], message: str) -> None:
    with pytest.raises(InputError, match="^words: " + message):
        draw_tree(words, [2, 0])


def test_no_words() -> None:
    with pytest.raises(InputError, match=r"^words: received none; expected at least one"):
        draw_tree([], [])


@pytest.mark.parametrize("width", [0, -3, 80.0, True, "80"])
def test_wrong_widths(width: int) -> None:
    with pytest.raises(InputError, match=r"^width: received .*; expected a positive number"):
        draw_tree(["Hi"], [0], width=width)


# ------------------------------------------------------------------ streams


@pytest.mark.parametrize(
    ("encoding", "answer"),
    [
        ("utf-8", True),
        ("utf-16", True),
        ("gb18030", True),
        ("ascii", False),
        ("cp1252", False),
        ("cp437", False),
    ],
)
def test_streams_by_their_encoding(encoding: str, answer: bool) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert supports_unicode(stream) == answer
    drawn = draw_tree(MAX, MAX_FOUND, gold=MAX_GOLD, ascii=not supports_unicode(stream))
    stream.write(drawn)
    stream.flush()


def test_streams_without_an_encoding() -> None:
    class Odd(io.StringIO):
        encoding = "no such encoding"

    assert not supports_unicode(io.StringIO())
    assert not supports_unicode(Odd())
    assert not supports_unicode(object())  # type: ignore[arg-type]
