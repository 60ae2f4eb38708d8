"""Trees of spans as text: bracketed lines, lines of the Penn Treebank, and trees of NLTK.

A span is ``(i, j, label)``: words ``i`` to ``j``, both included and counted from 0, and a label or
None. A list of spans has one for each bracket, outer before inner and left before right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from treelax.errors import BackendError, InputError, counted, install_command, short

Span: TypeAlias = tuple[int, int, str | None]

_TOKEN = re.compile(r"[()]|[^() \t\r\n\f\v]+")  # no-break spaces belong to a word
# what a bracket of a labelled line holds: a label with a word, or with brackets, or those alone
_LABELLED = re.compile("ww|w?b+")
_ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})


def brackets(
    tree: Tensor, words: Sequence[str] | None = None, labels: Sequence[str] | None = None
) -> str:
    """Write a binary tree as a bracketed line.

    Args:
        tree: ``(n, n)``, 0/1, the 2n-1 spans of a tree, such as ``Binary()(scores).mode``; with
            labels, ``(n, n, L)``.
        words: the n words, by default their positions from 0. Brackets in them are written
            ``-LRB-`` and ``-RRB-``.
        labels: the L names of labels, by default their numbers.

    Example:
        >>> tree = torch.eye(4)
        >>> tree[0, 1] = tree[2, 3] = tree[0, 3] = 1
        >>> brackets(tree, ["The", "cat", "sat", "down"])
        '((The cat) (sat down))'
        >>> labels = torch.tensor([[1, 0], [0, 2]])  # of the spans of the first two words
        >>> pair = torch.nn.functional.one_hot(labels, 3) * torch.ones(2, 2).triu()[..., None]
        >>> brackets(pair, ["The", "cat"], ["NP", "DT", "NN"])
        '(NP (DT The) (NN cat))'
    """
    return write_brackets(*_spans_of_tree(tree, words, labels))


def write_brackets(words: Sequence[str], spans: Iterable[Span]) -> str:
    """Words and spans that do not cross as a bracketed line."""
    pieces = []
    for opened, word, closed in _marks(words, spans):
        before = "".join(f"({_escaped(label, 'labels')} " if label else "(" for label in opened)
        pieces.append(before + _escaped(word, "words") + ")" * closed)
    return " ".join(pieces)


def _escaped(text: str, name: str) -> str:
    """A word or label as it may stand in a line."""
    escaped = text.translate(_ESCAPES)
    if not _TOKEN.fullmatch(escaped):
        raise InputError(f"{name} holds {short(text)}; expected no white space, and no empty words")
    return escaped


def read_brackets(line: str, *, labelled: bool | None = None) -> tuple[list[str], list[Span]]:
    """Read the words and spans of a bracketed line, plain or as the Penn Treebank has it.

    Nodes may have any number of children; a chain of unary nodes gives several spans of the same
    words. Escapes such as ``-LRB-`` stay as they are, and a bracket without a label around the whole
    labelled tree is skipped.

    Args:
        line: one tree.
        labelled: whether the first item of every bracket is a label. By default a line is taken as
            labelled if it could be and is not a plain binary tree, where all brackets are pairs. So
            for single words, such as ``(S (UH Yes))``, say ``labelled=True``.

    Example:
        >>> read_brackets("((The cat) sat)")
        (['The', 'cat', 'sat'], [(0, 2, None), (0, 1, None)])
        >>> read_brackets("(S (NP (DT The) (NN cat)) (VBD sat))")[1]
        [(0, 2, 'S'), (0, 1, 'NP'), (0, 0, 'DT'), (1, 1, 'NN'), (2, 2, 'VBD')]
    """
    tokens = _TOKEN.findall(line)
    shapes = _shapes(line, tokens)
    if labelled is None:
        pairs = all(len(shape) == 2 for shape in shapes)
        labelled = not pairs and all(map(_LABELLED.fullmatch, shapes))
    words: list[str] = []
    spans: list[Span] = []
    open_spans: list[int] = []
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token == "(":
            open_spans.append(len(spans))
            spans.append((len(words), -1, None))
        elif token == ")":
            which = open_spans.pop()
            start, _, label = spans[which]
            if start == len(words):
                raise InputError(f"line is {short(line)}; expected a word in every bracket")
            spans[which] = start, len(words) - 1, label
        elif labelled and before == "(":
            spans[-1] = len(words), -1, token
        else:
            words.append(token)
    if labelled and len(spans) > 1 and spans[0] == (*spans[1][:2], None):
        spans = spans[1:]
    return words, spans


def spans_to_tensor(
    spans: Iterable[tuple[int, int] | Span], n: int, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """The spans of a tree over ``n`` words, or those that are known, as a tensor ``(n, n)`` of 0/1.

    Single words and the whole sentence, which every tree has, are always 1; labels are left out.

    Example:
        >>> words, spans = read_brackets("((The cat) sat)")
        >>> spans_to_tensor(spans, len(words), dtype=torch.int64)
        tensor([[1, 1, 1],
                [0, 1, 0],
                [0, 0, 1]])
    """
    tensor = torch.eye(n, dtype=dtype)
    for i, j, *_ in [(0, n - 1), *spans] if n else spans:
        if not 0 <= i <= j < n:
            raise InputError(f"spans holds ({i}, {j}); expected 0 <= i <= j < {n} (n is {n})")
        tensor[i, j] = 1
    return tensor


def from_nltk(tree: Any) -> tuple[list[str], list[Span]]:
    """The words and spans of an `nltk.Tree`, as `read_brackets` gives them.

    Example:
        >>> from nltk import Tree
        >>> from_nltk(Tree("NP", [Tree("DT", ["The"]), "cat"]))
        (['The', 'cat'], [(0, 1, 'NP'), (0, 0, 'DT')])
    """
    words: list[str] = []
    spans: list[Span] = []
    todo: list[tuple[Any, int | None]] = [(tree, None)]  # a node, and its span once it is closed
    while todo:
        node, which = todo.pop()
        if which is not None:
            start, _, label = spans[which]
            if start == len(words):
                raise InputError(
                    f"tree holds a node {label!r} without words; expected at least one"
                )
            spans[which] = start, len(words) - 1, label
        elif isinstance(node, str) and node is not tree:
            words.append(node)
        elif callable(getattr(node, "label", None)):
            todo.append((node, len(spans)))
            spans.append((len(words), -1, node.label() or None))
            todo += [(child, None) for child in reversed(list(node))]
        else:
            raise InputError(f"tree holds a {type(node).__name__}; expected nltk.Tree and words")
    return words, spans


def to_nltk(
    tree: Tensor, words: Sequence[str] | None = None, labels: Sequence[str] | None = None
) -> Any:
    """A binary tree as an `nltk.Tree`, with empty labels where there are none.

    Takes what `brackets` takes.

    Example:
        >>> print(to_nltk(torch.ones(2, 2).triu(), ["Dogs", "bark"]))
        ( Dogs bark)
    """
    try:
        from nltk import Tree
    except ImportError as error:
        raise BackendError(
            f"to_nltk needs the nltk library, which is not installed: {install_command('data')}"
        ) from error
    words, spans = _spans_of_tree(tree, words, labels)
    nodes = [Tree("", [])]
    for opened, word, closed in _marks(words, spans):
        nodes += [Tree(label, []) for label in opened]
        nodes[-1].append(word)
        for _ in range(closed):
            node = nodes.pop()
            nodes[-1].append(node)
    return nodes[0][0]


def spans_beside(spans: Tensor) -> Tensor:
    """True at the spans ``(..., n, n)`` that cross none of the given ones, true or 1 at each."""
    count = spans.to(torch.int32)
    # a < i <= b < j: spans (i, j) with j beyond b, then those of them with i in (a, b]
    beyond = count.flip(-1).cumsum(-1).flip(-1) - count
    up_to = beyond.cumsum(-2)
    crossed = up_to.diagonal(dim1=-2, dim2=-1)[..., None, :] - up_to
    # i < a <= j < b: spans (i, j) with i before a, then those of them with j in [a, b)
    ahead = count.cumsum(-2) - count
    below = ahead.cumsum(-1) - ahead
    crossed = crossed + below - below.diagonal(dim1=-2, dim2=-1)[..., None]
    return crossed == 0


def check_spans(spans: Tensor, name: str) -> Tensor:
    """Spans ``(..., n, n)`` as Booleans; raise unless they are 0/1 and do not cross."""
    if not isinstance(spans, Tensor) or spans.dim() < 2 or spans.shape[-1] != spans.shape[-2]:
        got = (
            f"has shape {tuple(spans.shape)}" if isinstance(spans, Tensor) else f"is {spans!r:.60}"
        )
        raise InputError(f"{name} {got}; expected a tensor (..., n, n)")
    _check_binary(spans, name)
    present = spans == 1
    if (backwards := present.tril(-1)).any():
        raise InputError(f"{_place(name, backwards)} is 1; expected spans (i, j) with i <= j")
    if (crossed := present & ~spans_beside(present)).any():
        *batch, i, j = (int(x) for x in crossed.nonzero()[0])
        one = torch.zeros_like(present[tuple(batch)])
        one[i, j] = True
        other = (present[tuple(batch)] & ~spans_beside(one)).nonzero()[0].tolist()
        where = f"{name}{batch}" if batch else name
        raise InputError(
            f"{where} holds {(i, j)} and {tuple(other)}; expected spans that do not cross"
        )
    return present


def _check_binary(values: Tensor, name: str) -> None:
    """Raise unless all values are 0 or 1."""
    if (wrong := (values != 0) & (values != 1)).any():
        value = values[wrong][0].item()
        raise InputError(f"{_place(name, wrong)} is {value:g}; expected 0 or 1")


def _place(name: str, wrong: Tensor) -> str:
    """``tree[0, 3]``, the first entry that is wrong."""
    return f"{name}{wrong.nonzero()[0].tolist()}"


def _spans_of_tree(
    tree: Tensor, words: Sequence[str] | None, labels: Sequence[str] | None
) -> tuple[list[str], list[Span]]:
    """Words and spans of a binary tree; single words are spans where they have a label."""
    shape = tuple(tree.shape) if isinstance(tree, Tensor) else ()
    if len(shape) not in (2, 3) or shape[0] != shape[1] or 0 in shape:
        got = f"has shape {shape}" if isinstance(tree, Tensor) else f"is {tree!r:.60}"
        raise InputError(f"tree {got}; expected one tree (n, n), or (n, n, L) with labels")
    n, labelled = shape[0], len(shape) == 3
    if words is not None and (isinstance(words, str) or len(words) != n):
        raise InputError(
            f"words is {short(words)}; expected a list of {n} words (tree has shape {shape}; in a "
            "padded batch, use tree[:n, :n])"
        )
    if labels is not None and len(labels) != (shape[2] if labelled else -1):
        wanted = f"{shape[2]} names" if labelled else "None"
        raise InputError(
            f"labels has {len(labels)} names; expected {wanted} (tree has shape {shape})"
        )
    tree = tree.detach().cpu()
    names = [*map(str, range(shape[-1]))] if labels is None else labels
    if labelled:
        _check_binary(tree, "tree")
        tree, label = tree.sum(-1), tree.to(torch.uint8).argmax(-1).tolist()
    pairs = check_spans(tree, "tree").nonzero().tolist()
    if len(pairs) != 2 * n - 1:
        raise InputError(
            f"tree has {counted(len(pairs), 'span')}; expected {2 * n - 1}, a binary tree over {n} words"
        )
    spans = [(i, j, names[label[i][j]] if labelled else None) for i, j in pairs]
    if not labelled and n > 1:
        spans = [(i, j, None) for i, j, _ in spans if i < j]
    return [*map(str, range(n))] if words is None else list(words), spans


def _marks(words: Sequence[str], spans: Iterable[Span]) -> Iterator[tuple[list[str], str, int]]:
    """For every word the labels of the spans that begin at it, outer ones first, and how many end."""
    opened: list[list[str]] = [[] for _ in words]
    closed = [0] * len(words)
    for i, j, label in sorted(spans, key=lambda span: -span[1]):
        opened[i].append(label or "")
        closed[j] += 1
    return zip(opened, words, closed, strict=True)


def _shapes(line: str, tokens: Iterable[str]) -> list[str]:
    """What each bracket of a line holds, as in "wb": a word or label, then a bracket."""
    expected = "expected one tree in brackets, such as ((The cat) sat)"
    inside, shapes = [""], []
    for token in tokens:
        if token == ")" and len(inside) == 1:
            raise InputError(f"line is {short(line)}, with a bracket too many; {expected}")
        if token == ")":
            shapes.append(inside.pop())
        else:
            inside[-1] += "b" if token == "(" else "w"
            inside += [""] * (token == "(")
    if len(inside) > 1:
        missing = f"{counted(len(inside) - 1, 'bracket')} left open"
        raise InputError(f"line is {short(line)}, with {missing}; {expected}")
    if inside != ["b"]:
        raise InputError(f"line is {short(line)}; {expected}")
    return shapes
