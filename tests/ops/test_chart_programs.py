"""What a further chart program takes: a table of rules. Here Eisner's with labels that are rationed.

A head has at most one dependent of each label in ``at_most_one``, left and right together, as a verb
has one subject. A complete item carries the labels that its side of the head has had, an incomplete one
those of both words, and where the two sides of a head meet, no label may be on both:

    U(i,j)[a,b]   = <C→(i,k)[a], C←(k+1,j)[b]>              the right side of i and the left side of j
    I→(i,j)[a,b]  = ⊕ U(i,j)[a\\l,b] + W[i,j,l]              l ∉ a\\l is put into a if it is rationed
    I←(i,j)[a,b]  = ⊕ U(i,j)[a,b\\l] + W[j,i,l]
    C→(i,j)[a]    = ⊕ <I→(i,k)[a,b], C→(k,j)[c]>            b ∩ c = ∅, both of k
    C←(i,j)[b]    = ⊕ <C←(i,k)[c], I←(k,j)[a,b]>            a ∩ c = ∅, both of k
    goal(0,n)     = ⊕ C→(0,n)[a]

The sets of a labelled tree's items follow from the tree: it has one derivation, as in Eisner's program.
"""

import inspect
import itertools
from collections import defaultdict

import oracle
import pytest
import torch
from tolerances import EXACT, largest_error
from torch import Tensor
from torch.autograd import gradcheck

from treelax.ops.backend import Batch
from treelax.ops.chart import centring
from treelax.ops.chart.plain import PlainBackend
from treelax.ops.chart.reference import ReferenceBackend
from treelax.ops.chart.rules import Item, Operands, Program, Rule
from treelax.ops.chart.triton_source import SOURCES, source
from treelax.ops.checks import arc_mask

# ── the program ──────────────────────────────────────────────────────────────────────────────────


def rationed(labels: int, at_most_one: tuple[int, ...]) -> Program:
    """Eisner's program over ``labels``; at least one of them is not in ``at_most_one``."""
    counts = range(len(at_most_one) + 1)
    sets = [frozenset(s) for n in counts for s in itertools.combinations(at_most_one, n)]
    states = list(itertools.product(sets, sets))
    right = {a: Item("C→", empty=not a) for a in sets}
    left = {b: Item("C←", empty=not b) for b in sets}
    arc_right, arc_left = ({state: Item(name) for state in states} for name in ("I→", "I←"))
    goal = Item("goal")
    attach = []
    ways = defaultdict(list)  # to make an incomplete item: U plus the score of one label
    for a, b in states:
        makes = []
        for part, side, arcs in ((1, a, arc_right), (-1, b, arc_left)):
            for label in set(range(labels)) - side:
                had = side | ({label} & set(at_most_one))
                arc = arcs[(had, b) if part > 0 else (a, had)]
                makes.append(Item("U + W", part, label))
                ways[arc].append(Operands(makes[-1]))
        attach.append(Rule(tuple(makes), (Operands(right[a], left[b], gap=1),), one_root=True))
    label = [Rule((arc,), tuple(operands)) for arc, operands in ways.items()]
    complete = defaultdict(list)
    for (a, b), c in itertools.product(states, sets):
        if not b & c:
            complete[right[a]].append(Operands(arc_right[a, b], right[c], first=1))
        if not a & c:
            complete[left[b]].append(Operands(left[c], arc_left[a, b]))
    return Program(
        rules=(
            *attach,
            *label,
            *(Rule((item,), tuple(operands)) for item, operands in complete.items()),
            Rule((goal,), tuple(map(Operands, right.values()))),
        ),
        goal=goal,
        rooted=True,
        parts=lambda lengths, size: arc_mask(lengths, size)[..., None],
        shift=centring.shift_columns,
    )


def test_the_program_is_short():
    assert len(inspect.getsource(rationed).splitlines()) <= 80


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.parent.name)
def test_generated_sweeps_are_those_of_the_rules(path):
    """If this fails: ``python -m treelax.ops.chart.triton_source``."""
    assert path.read_text() == source(*SOURCES[path])


# ── against the enumeration of all labelled trees ────────────────────────────────────────────────

PROGRAMS = {
    "one of two labels": (2, (1,)),
    "both of three labels": (3, (0, 2)),
    "no label": (2, ()),
}
BACKENDS = {"reference": ReferenceBackend, "plain": PlainBackend}
both_backends = pytest.mark.parametrize("backend", BACKENDS)
both_roots = pytest.mark.parametrize("single_root", [False, True])
every_program = pytest.mark.parametrize("rations", PROGRAMS.values(), ids=PROGRAMS)


def labelled_trees(n: int, labels: int, at_most_one: tuple[int, ...], single_root: bool) -> Tensor:
    """Those allowed, as 0/1 ``(count, n+1, n+1, labels)``."""
    trees = oracle.indicators(n, single_root and n > 0)
    words = list(itertools.product(range(labels), repeat=n))
    of_words = torch.tensor(words, dtype=torch.long).reshape(len(words), n)
    chosen = torch.nn.functional.one_hot(of_words, labels).to(trees)
    chosen = torch.cat((chosen.new_zeros(len(words), 1, labels), chosen), 1)
    candidates = torch.einsum("thm,wml->twhml", trees, chosen).flatten(0, 1)
    dependents = candidates.sum(2)[..., list(at_most_one)]  # by head and label
    return candidates[(dependents <= 1).flatten(1).all(1)]


def enumerated(
    scores: Tensor, lengths: Tensor, rations: tuple, single_root: bool, reduce
) -> Tensor:
    """A reduction over the scores of all trees of every sentence."""
    results = []
    for sentence, n in zip(scores, lengths.tolist(), strict=True):
        trees = labelled_trees(n, *rations, single_root)
        used = sentence[: n + 1, : n + 1]
        results.append(reduce(torch.where(trees > 0, used, 0).flatten(1).sum(1)))
    return torch.stack(results)


class SoftTree(torch.autograd.Function):
    """Tree and value of a backend, with its own backward pass."""

    @staticmethod
    def forward(ctx, scores, lengths, backend, relaxation, single_root):
        given = Batch(scores, lengths, relaxation, single_root)
        tree, value, saved = backend.soft_tree(given, True)
        ctx.save_for_backward(saved)
        ctx.call = backend, given
        return tree, value

    @staticmethod
    def backward(ctx, grad_tree, grad_value):
        backend, given = ctx.call
        grad = backend.soft_tree_backward(grad_tree, grad_value, *ctx.saved_tensors, given)
        return grad, None, None, None, None


def problem(rations: tuple, generator: torch.Generator, longest: int) -> tuple[Tensor, Tensor]:
    """Ragged sentences; in the second one some arcs are forbidden; NaN in the padding."""
    lengths = torch.tensor([longest, longest, longest - 1, 1, 0])
    shape = (len(lengths), longest + 1, longest + 1, rations[0])
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    scores[1, 0, 1, 0] = scores[1, 2, 3] = scores[1, 1, 2, -1] = -torch.inf
    padding = ~arc_mask(lengths, longest + 1)
    return scores.masked_fill(padding[..., None], torch.nan), lengths


@both_backends
@both_roots
@every_program
def test_values_marginals_gradients_and_best_trees(rations, single_root, backend, generator):
    scores, lengths = problem(rations, generator, 5 if rations[0] == 2 else 4)
    runner = BACKENDS[backend](rationed(*rations))
    arcs = arc_mask(lengths, scores.shape[1])[..., None]
    weights = torch.randn(scores.shape, generator=generator, dtype=torch.float64)

    def derivatives(tree: Tensor, value: Tensor, inputs: Tensor) -> Tensor:
        loss = (tree * weights).masked_select(arcs).sum() + 0.3 * value.sum()
        return torch.autograd.grad(loss, inputs)[0]

    inputs = scores.clone().requires_grad_()
    value = enumerated(inputs, lengths, rations, single_root, lambda s: s.logsumexp(0))
    (tree,) = torch.autograd.grad(value.sum(), inputs, create_graph=True)
    expected = derivatives(tree, value, inputs)
    value, tree = value.detach(), tree.detach()
    inputs = scores.clone().requires_grad_()
    got = SoftTree.apply(inputs, lengths, runner, "entropy", single_root)
    assert largest_error(got[1].detach(), value) < EXACT
    assert largest_error(got[0].detach(), tree) < EXACT
    assert largest_error(derivatives(*got, inputs), expected) < EXACT
    given = Batch(scores, lengths, single_root=single_root)
    assert torch.equal(runner.log_partition(given), got[1])

    best, value = runner.best_tree(given)
    assert (
        largest_error(value, enumerated(scores, lengths, rations, single_root, torch.max)) < EXACT
    )
    for tree, n in zip(best, lengths.tolist(), strict=True):
        allowed = labelled_trees(n, *rations, single_root)
        assert (allowed == tree[: n + 1, : n + 1]).flatten(1).all(1).sum() == 1
    assert largest_error((best * scores.masked_fill(~arcs, 0)).nansum((1, 2, 3)), value) < EXACT


@pytest.mark.parametrize(("relaxation", "single_root"), [("softmax", True), ("entropy", False)])
def test_relaxations_by_finite_differences(relaxation, single_root, generator):
    rations = (2, (1,))
    scores, lengths = problem(rations, generator, 3)
    scores, lengths = scores[1:3].nan_to_num(0).requires_grad_(), lengths[1:3]
    runner = PlainBackend(rationed(*rations))
    assert gradcheck(lambda s: SoftTree.apply(s, lengths, runner, relaxation, single_root), scores)


@both_roots
@every_program
def test_backends_agree(rations, single_root, generator):
    """On the paper's relaxation, which no enumeration gives, and on samples."""
    scores, lengths = problem(rations, generator, 4)
    program = rationed(*rations)
    results = []
    for backend in (ReferenceBackend(program), PlainBackend(program)):
        inputs = scores.clone().requires_grad_()
        tree, value = SoftTree.apply(inputs, lengths, backend, "softmax", single_root)
        heads = tree.detach().sum((1, 3))
        words = torch.arange(scores.shape[1])
        assert largest_error(heads, ((words > 0) & (words <= lengths[:, None])).double()) < EXACT
        tree.square().sum().backward()
        results.append((tree.detach(), value.detach(), inputs.grad))
    for reference, plain in zip(*results, strict=True):
        assert largest_error(plain, reference) < EXACT
    given = Batch(scores * 1e4, lengths, "softmax", single_root)
    cold = PlainBackend(program).soft_tree(given, False)[0]
    best = PlainBackend(program).best_tree(given)[0]
    assert largest_error(cold, best) < EXACT


@both_roots
@every_program
def test_samples(rations, single_root, generator):
    """Both backends draw the same ones, with the frequencies of the distribution."""
    scores, lengths = problem(rations, generator, 3)
    decisions = 3 * 3 + 1  # for every word C, I and U, and one for the goal
    uniforms = torch.rand((4000, len(lengths), decisions), generator=generator, dtype=torch.float64)
    program = rationed(*rations)
    given = Batch(scores, lengths, single_root=single_root)
    trees, value = PlainBackend(program).sample_tree(given, uniforms)
    few = ReferenceBackend(program).sample_tree(given, uniforms[:50])
    assert torch.equal(trees[:50], few[0])
    assert largest_error(few[1], value) < EXACT
    for b, n in enumerate(lengths.tolist()):
        allowed = labelled_trees(n, *rations, single_root)
        used = torch.where(allowed > 0, scores[b, : n + 1, : n + 1], 0)
        expected = used.flatten(1).sum(1).softmax(0)
        drawn = trees[:, b, : n + 1, : n + 1].flatten(1) @ allowed.flatten(1).T == n
        assert torch.equal(drawn.sum(1), torch.ones(4000, dtype=torch.long))
        # six standard deviations of a frequency
        spread = 6 * (expected * (1 - expected) / 4000).sqrt() + 1e-12
        assert ((drawn.double().mean(0) - expected).abs() <= spread).all()


def test_large_scores_keep_their_digits_in_float32(generator):
    """Centring with labels."""
    scores = 300 * torch.randn(2, 9, 9, 2, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([8, 6])
    runner = PlainBackend(rationed(2, (1,)))
    exact, rounded, exact_rounded = (
        runner.soft_tree(Batch(x, lengths, "entropy", True), False)
        for x in (scores, scores.float(), scores.float().double())
    )
    assert largest_error(rounded[0], exact_rounded[0]) < 1e-5
    assert largest_error(rounded[1], exact[1]) < 1e-5
