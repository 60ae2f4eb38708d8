"""The matrix of the contract suites: structures, their members, backends and operations.

Every structure passes the same tests, and every backend of it that runs on a CPU. A new structure
joins `STRUCTURES` and says in `members` what it is, a new backend joins `backends`; nothing else needs
to know of it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any
from unittest import mock

import oracle
import pytest
import torch
from tolerances import gradient_tolerance, largest_error, value_tolerance
from torch import Tensor
from toy_structure import Star

import treelax as tx
from treelax.ops import native
from treelax.ops.call import make_call
from treelax.ops.matrix_tree import arithmetic, diagonal
from treelax.structures.paths import PathStructure
from treelax.trees import heads_to_tree

LABELS = 2
LENGTHS = torch.tensor([4, 3, 1])
#: Those that have backends.
ALGORITHMS = [
    tx.Projective(),
    tx.Projective(single_root=True),
    tx.NonProjective(),
    tx.NonProjective(single_root=True),
    tx.Binary(),
]
STRUCTURES = [
    *ALGORITHMS,
    tx.Heads(),
    tx.Spanning(),
    Star(),
    tx.Labelled(tx.Projective()),
    tx.Labelled(tx.NonProjective(single_root=True)),
    tx.Labelled(tx.Binary()),
    tx.Labelled(tx.Spanning()),
    tx.Chain(),
    tx.Segments(3),
    tx.Segments(3, transitions=True),
]
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)
every_algorithm = pytest.mark.parametrize("structure", ALGORITHMS, ids=str)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ── structures ───────────────────────────────────────────────────────────────────────────────────


def event(structure: tx.Structure, n: int) -> tuple[int, ...]:
    """Shape of a structure over n words."""
    if isinstance(structure, PathStructure):
        return structure.shape(n, 3 if structure == tx.Chain() else LABELS)
    size = n + structure.rooted
    return (size, size, LABELS)[: structure.event_dim]


def draw(
    structure: tx.Structure, *batch: int, n: int = 4, scale: float = 1, seed: int = 1
) -> Tensor:
    """Scores of sentences of n words, float64."""
    shape = (*batch, *event(structure, n))
    return scale * torch.randn(shape, dtype=torch.float64, generator=seeded(seed))


def inside(scores: Tensor, structure: tx.Structure, n: int) -> Tensor:
    """The scores of the first n words; those of a batch have labels or not."""
    size = n + structure.rooted
    dims = structure.event_dim
    if isinstance(structure, PathStructure):
        return scores.narrow(-dims, 0, n)
    return scores.narrow(-dims, 0, size).narrow(1 - dims, 0, size)


def mask_of(structure: tx.Structure, lengths: Tensor, like: Tensor) -> Tensor:
    """True at the parts, in the shape of scores."""
    return structure.part_mask(lengths, *like.shape[-structure.event_dim :]).expand(like.shape)


def column(values: Tensor, structure: tx.Structure) -> Tensor:
    """Values of sentences, to be multiplied by structures."""
    return values.reshape(*values.shape, *(1,) * structure.event_dim)


def total(trees: Tensor, scores: Tensor, dims: int = 2) -> Tensor:
    """The scores of structures."""
    return torch.where(trees != 0, scores, 0).flatten(-dims).sum(-1)


def bracketings(i: int, j: int) -> Iterator[list[tuple[int, int]]]:
    """The spans of every binary tree over words i to j."""
    if i == j:
        yield [(i, i)]
    for k in range(i, j):
        for left, right in itertools.product(bracketings(i, k), bracketings(k + 1, j)):
            yield [(i, j), *left, *right]


def is_spanning(edges: tuple[tuple[int, int], ...], n: int) -> bool:
    """Whether an edge leaves every set of nodes other than 0."""
    cuts = [set(c) for size in range(1, n) for c in itertools.combinations(range(1, n), size)]
    return all(any((i in cut) != (j in cut) for i, j in edges) for cut in cuts)


def is_star(heads: tuple[int, ...]) -> bool:
    centres = [word for word, head in enumerate(heads, 1) if head == 0]
    return len(centres) == 1 and all(head in (0, centres[0]) for head in heads)


def paths(structure: tx.Structure, shape: tuple[int, ...], length: Any) -> Tensor:
    """All structures of a sentence, 0/1 of the shape of the scores, by walks from the beginning."""
    found = []

    def part(i, k, before, c):
        if isinstance(structure, tx.Chain):
            return i, before, c
        return (i, k, before, c) if structure.transitions else (i, k, c)

    def moved(parts, i, j):
        if [i + 1, j + 1] == length:
            found.append(parts)
        for move, (down, right) in enumerate(((1, 1), (1, 0), (0, 1))):
            if i + down < length[0] and j + right < length[1]:
                moved([*parts, (i + down, j + right, move)], i + down, j + right)

    if isinstance(structure, tx.Alignment):
        moved([(0, 0, 0)], 0, 0)
    else:
        labels = shape[-1]
        longest = 1 if isinstance(structure, tx.Chain) else shape[1]

        def walk(parts, i, before):
            if i == length:
                found.append(parts)
            for k, c in itertools.product(range(min(longest, length - i)), range(labels)):
                walk([*parts, part(i, k, before, c)], i + k + 1, c)

        walk([], 0, 0)
    result = torch.zeros(len(found), *shape, dtype=torch.float64)
    for row, parts in zip(result, found, strict=True):
        for place in parts:
            row[place] = 1
    return result


def marked(structures: list[Any], size: int) -> Tensor:
    """Structures given by the places ``(i, j)`` of their parts, as 0/1."""
    found = torch.zeros(len(structures), size, size, dtype=torch.float64)
    for one, places in zip(found, structures, strict=True):
        for i, j in places:
            one[i, j] = 1
    return found


def spanning_trees(n: int, size: int) -> Tensor:
    """Those of n nodes, by definition."""
    edges = itertools.combinations(itertools.combinations(range(n), 2), max(n - 1, 0))
    return marked([places for places in edges if is_spanning(places, n)], size)


@functools.cache
def members(structure: tx.Structure, n: int) -> Tensor:
    """All structures over n words, by definition, with nothing of the library."""
    if n == 0:
        return torch.zeros(1, *event(structure, 0), dtype=torch.float64)
    if isinstance(structure, PathStructure):
        return paths(structure, event(structure, n), n)
    if isinstance(structure, tx.Labelled):
        found = []
        for tree in members(structure.structure, n):
            places = tree.nonzero().tolist()
            for labels in itertools.product(range(LABELS), repeat=len(places)):
                found.append(torch.zeros(event(structure, n), dtype=torch.float64))
                for (i, j), label in zip(places, labels, strict=True):
                    found[-1][i, j, label] = 1
        return torch.stack(found)
    if isinstance(structure, tx.Binary):
        return marked(list(bracketings(0, n - 1)), n)
    if isinstance(structure, tx.Spanning):
        return spanning_trees(n, n)
    single_root = getattr(structure, "single_root", False)
    heads = [
        candidate
        for candidate in itertools.product(range(n + 1), repeat=n)
        if all(head != word for word, head in enumerate(candidate, 1))
        and (isinstance(structure, tx.Heads) or oracle.is_tree(candidate, single_root))
        and (not isinstance(structure, tx.Projective) or oracle.is_projective(candidate))
        and (not isinstance(structure, Star) or is_star(candidate))
    ]
    return heads_to_tree(torch.tensor(heads), dtype=torch.float64)


# ── operations ───────────────────────────────────────────────────────────────────────────────────


def drawn(structure: tx.Structure, scores: Tensor, lengths: Tensor | None, **options) -> Tensor:
    return structure.sample(scores, lengths, sample_shape=(2,), generator=seeded(), **options)


def softest(structure: tx.Structure, scores: Tensor, lengths: Tensor | None, **options) -> Tensor:
    relaxation = structure.relaxations[0]
    return structure.relaxed(scores, lengths, relaxation=relaxation, **options)


#: Each returns a tensor; the differentiable ones first.
OPERATIONS = {
    "relaxed": softest,
    "marginals": lambda s, *given, **options: s.marginals(*given, **options)[0],
    "log_partition": lambda s, *given, **options: s.log_partition(*given, **options),
    "argmax": lambda s, *given, **options: s.argmax(*given, **options),
    "sample": drawn,
}
SMOOTH = ("relaxed", "marginals", "log_partition")
every_operation = pytest.mark.parametrize("operation", OPERATIONS)


def soft(
    structure: tx.Structure, scores: Tensor, lengths: Tensor, relaxation: str, backend: str
) -> tuple[Tensor, Tensor]:
    """A relaxed tree and the value of its chart: the one call of the tests below the public names."""
    return make_call(
        structure.algorithm,
        scores,
        lengths,
        relaxation=relaxation,
        single_root=structure.single_root,
        backend=backend,
    ).soft()


@contextlib.contextmanager
def uniforms(table: Tensor) -> Iterator[None]:
    """Samples take their random numbers from a table ``(samples, batch, decisions)``, cut to size."""

    def rand(shape, *, dtype, **_):
        shape = tuple(shape)
        values = table[:, :, : shape[-1]].to(dtype).clamp(max=1 - torch.finfo(dtype).eps / 2)
        return values.reshape(shape)

    with mock.patch.object(torch, "rand", rand):
        yield


# ── against the reference ────────────────────────────────────────────────────────────────────────


class Problem:
    """A ragged batch with garbage in its padding, forbidden parts and upstream gradients; what the
    reference makes of it. The scores are exact in float32."""

    def __init__(
        self, structure: tx.Structure, n: int, batch: int = 0, scale: float = 2, offset: float = 0
    ) -> None:
        batch = batch or (19 if n <= 5 else 5 if n <= 17 else 3)  # 19: more than a group of lanes
        self.structure = structure
        self.lengths = torch.randint(0, n + 1, (batch,), generator=seeded(n))
        self.lengths[:3] = torch.tensor([n, 0, 1])
        scores = (draw(structure, batch, n=n, scale=scale, seed=n) + offset).float().double()
        if n > 2:
            scores[0, 1, 2] = -torch.inf
        self.mask = mask_of(structure, self.lengths, scores)
        garbage = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e30, -7])
        choice = torch.randint(5, scores.shape, generator=seeded(n))
        self.scores = torch.where(self.mask, scores, garbage[choice].double())
        self.upstream = draw(structure, batch, n=n, seed=n + 1)
        self.table = torch.rand(3, batch, 2 * n + 2, dtype=torch.float64, generator=seeded(n))
        # as far as the type goes: rounding may leave it above every cumulative sum
        self.table[0] = 1
        self.table[1] = 0
        #: Long sentences take the loops too long: plain PyTorch, which short ones hold to them.
        self.judge = "reference" if n <= 17 else "diagonal"

    @functools.cache  # noqa: B019
    def smooth(self, relaxation: str) -> tuple[Tensor, ...]:
        """Relaxed tree, value, and the gradient of both, of the reference."""
        given = self.structure, self.scores, self.lengths, self.judge, relaxation, self.upstream
        return results(*given)

    @functools.cached_property
    def discrete(self) -> tuple[Tensor, Tensor]:
        """Best trees and samples of the reference."""
        return self.trees(self.judge, self.scores)

    def trees(self, backend: str, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Best trees and samples, with the random numbers of the table."""
        given, options = (scores, self.lengths.to(scores.device)), {"backend": backend}
        with uniforms(self.table):
            sample = self.structure.sample(*given, sample_shape=(3,), **options)
        return self.structure.argmax(*given, **options), sample

    def agrees(
        self, backend: str, dtype: torch.dtype, device: str = "cpu", relaxations: Any = None
    ) -> int:
        """Check a backend on a device; the number of comparisons."""
        scores, lengths, upstream = (
            x.to(device) for x in (self.scores.to(dtype), self.lengths, self.upstream.to(dtype))
        )
        relaxations = relaxations or self.structure.relaxations
        for relaxation in relaxations:
            given = scores, lengths, backend, relaxation
            got = [x.cpu() for x in results(self.structure, *given, upstream)]
            tree, value, grad = self.smooth(relaxation)
            assert {x.dtype for x in got} == {dtype}
            assert largest_error(got[0], tree) < value_tolerance(dtype)
            assert largest_error(got[1], value) < value_tolerance(dtype)
            assert largest_error(got[2], grad) < gradient_tolerance(dtype)
            assert not got[0][~self.mask].any()
            assert not got[2][~self.mask].any()
            unsaved = soft(self.structure, scores, lengths, relaxation, backend)
            assert torch.equal(unsaved[0].cpu(), got[0])
        if dtype == torch.float64:
            for trees, expected in zip(self.trees(backend, scores), self.discrete, strict=True):
                assert torch.equal(trees.cpu(), expected)
        return 7 * len(relaxations) + 2 * (dtype == torch.float64)


#: One for all backends.
problem = functools.cache(Problem)


def results(
    structure: tx.Structure,
    scores: Tensor,
    lengths: Tensor,
    backend: str,
    relaxation: str,
    upstream: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Soft tree, value, and the gradient of both."""
    leaf = scores.clone().requires_grad_()
    tree, value = soft(structure, leaf, lengths, relaxation, backend)
    (grad,) = torch.autograd.grad((tree, value), leaf, (upstream, upstream[:, 0, -1].contiguous()))
    return tree.detach(), value.detach(), grad


# ── backends ─────────────────────────────────────────────────────────────────────────────────────


def backends(structure: tx.Structure) -> list[str]:
    """Fast ones: each instruction set of the C++ kernel that this processor runs counts as one, and so
    does what plain PyTorch computes of non-projective trees where it may not branch, on a GPU."""
    logarithms = ["diagonal-logarithms"] if isinstance(structure, tx.NonProjective) else []
    return ["diagonal", *logarithms, *(f"native-{variant}" for variant in native.supported())]


CELLS = [(structure, backend) for structure in ALGORITHMS for backend in backends(structure)]
NATIVE = [cell for cell in CELLS if cell[1].startswith("native")]
REFERENCE = [(structure, "reference") for structure in ALGORITHMS]


def every_cell(cells: list) -> pytest.MarkDecorator:
    """The ``backend`` is a fixture, which sets it up and gives its name."""
    return pytest.mark.parametrize(("structure", "backend"), cells, indirect=["backend"], ids=str)


def log_size(structure: tx.Structure, n: int, level: float) -> float:
    """Log of the number of the best structures, labels included, where all scores are alike."""
    if isinstance(structure, PathStructure):  # those of the most parts, or the fewest
        counts = math.copysign(1, level) * members(structure, n).flatten(1).sum(1)
        return math.log(int((counts == counts.amax()).sum()))
    parts = int(structure.part_count(torch.tensor(n)))
    return structure.log_count(n) + parts * math.log(LABELS) * (structure.event_dim - 2)


@contextlib.contextmanager
def using(cell: str) -> Iterator[str]:
    """The name of a backend, in the form that a cell of the matrix asks for."""
    name, _, form = cell.partition("-")
    with contextlib.ExitStack() as stack:
        if name == "native":
            stack.enter_context(mock.patch.dict("os.environ", TREELAX_NATIVE=form))
            native.forget()
            stack.callback(native.forget)
        elif form:
            stack.enter_context(
                mock.patch.object(
                    diagonal, "carefully", lambda run, *given: run(arithmetic.Log(), *given)[:-1]
                )
            )
        yield name
