"""The latent tree layer: modes, noise, straight-through, gradients, torch.compile."""

import pytest
import torch
from tolerances import EXACT, largest_error
from torch import nn
from torch.func import functional_call

from treelax import ops
from treelax.errors import InputError, NoTreeError
from treelax.nn import ArcScorer, LatentTree
from treelax.noise import perturbation
from treelax.trees import is_projective, is_tree, tree_to_heads

LENGTHS = torch.tensor([5, 3, 1])
NOISES = ["none", "gumbel", "sum-of-gamma"]
STRUCTURES = ["projective", "heads"]
RELAXATIONS = ["softmax", "entropy"]

every_structure = pytest.mark.parametrize("structure", STRUCTURES)
every_noise = pytest.mark.parametrize("noise", NOISES)


def make(**options) -> LatentTree:
    """A float64 layer with no weight at its initial value (zero biases sit on the edge of ReLU)."""
    torch.manual_seed(11)
    layer = LatentTree(ArcScorer(4, 6), **options).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def make_vectors(*batch) -> torch.Tensor:
    return torch.randn(
        *(batch or (3,)), 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(13)
    )


def seeded(seed=17) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def error(got, expected) -> float:
    return largest_error(got.detach(), expected.detach())


# ── evaluation ───────────────────────────────────────────────────────────────────────────────────


@every_structure
@every_noise
@pytest.mark.parametrize("straight_through", [False, True])
def test_evaluation_gives_the_best_tree_without_noise(structure, noise, straight_through):
    layer = make(structure=structure, noise=noise, straight_through=straight_through).eval()
    vectors = make_vectors()
    scores = layer.scorer(vectors)
    if structure == "heads":
        expected = ops.select_heads(scores, LENGTHS, hard=True)
    else:
        expected = ops.best_tree(scores, LENGTHS)
    tree = layer(vectors, LENGTHS)
    assert torch.equal(tree, expected)
    assert torch.equal(tree, layer(vectors, LENGTHS))
    assert not tree.requires_grad


# ── training ─────────────────────────────────────────────────────────────────────────────────────


@every_noise
@pytest.mark.parametrize("relaxation", RELAXATIONS)
@pytest.mark.parametrize("single_root", [False, True])
def test_training_perturbs_and_parses(noise, relaxation, single_root):
    layer = make(noise=noise, relaxation=relaxation, temperature=0.7, single_root=single_root)
    vectors = make_vectors()
    scores = layer.scorer(vectors)
    perturbed = scores + perturbation(noise, scores, LENGTHS, generator=seeded())
    expected = ops.soft_tree(
        perturbed, LENGTHS, relaxation=relaxation, temperature=0.7, single_root=single_root
    )
    assert torch.equal(layer(vectors, LENGTHS, generator=seeded()), expected)


@every_noise
def test_training_perturbs_and_selects_heads(noise):
    layer = make(structure="heads", noise=noise, temperature=0.7)
    vectors = make_vectors()
    scores = layer.scorer(vectors)
    perturbed = scores + perturbation(noise, scores, LENGTHS, generator=seeded())
    expected = ops.select_heads(perturbed, LENGTHS, temperature=0.7)
    assert torch.equal(layer(vectors, LENGTHS, generator=seeded()), expected)


@every_structure
@every_noise
@pytest.mark.parametrize("straight_through", [False, True])
def test_columns_of_words_sum_to_one_and_padding_is_zero(structure, noise, straight_through):
    layer = make(structure=structure, noise=noise, straight_through=straight_through)
    tree = layer(make_vectors(), LENGTHS, generator=seeded())
    position = torch.arange(6)
    words = (position >= 1) & (position <= LENGTHS[:, None])
    assert error(tree.sum(-2), words.double()) < EXACT
    outside = position > LENGTHS[:, None]
    assert torch.count_nonzero(tree.masked_select(outside[:, :, None])) == 0
    assert torch.count_nonzero(tree.masked_select(outside[:, None, :])) == 0


@pytest.mark.parametrize("noise", ["gumbel", "sum-of-gamma"])
def test_noise_is_reproducible_and_differs_from_call_to_call(noise):
    layer, vectors = make(noise=noise), make_vectors()
    first = layer(vectors, LENGTHS, generator=seeded())
    assert torch.equal(first, layer(vectors, LENGTHS, generator=seeded()))
    generator = seeded()
    drawn = [layer(vectors, LENGTHS, generator=generator) for _ in range(2)]
    assert torch.equal(first, drawn[0])
    assert not torch.equal(first, drawn[1])
    torch.manual_seed(1)
    own = layer(vectors, LENGTHS)
    torch.manual_seed(1)
    assert torch.equal(own, layer(vectors, LENGTHS))


def test_no_noise_touches_no_generator():
    layer, vectors = make(noise="none"), make_vectors()
    generator = seeded()
    before = generator.get_state(), torch.get_rng_state()
    assert torch.equal(layer(vectors, LENGTHS, generator=generator), layer(vectors, LENGTHS))
    assert torch.equal(generator.get_state(), before[0])
    assert torch.equal(torch.get_rng_state(), before[1])
    assert make(noise=None).estimator.noise is None


def test_the_scale_of_the_noise():
    vectors = make_vectors()
    still = make(noise="none")(vectors, LENGTHS)
    assert torch.equal(make(noise_scale=0.0)(vectors, LENGTHS), still)
    layer = make(noise_scale=0.3)
    scores = layer.scorer(vectors)
    perturbed = scores + 0.3 * perturbation("gumbel", scores, LENGTHS, generator=seeded())
    got = layer(vectors, LENGTHS, generator=seeded())
    assert error(got, ops.soft_tree(perturbed, LENGTHS)) < EXACT


def test_single_root():
    """Scores that love the root: many modifiers if allowed, one if not."""
    scores = torch.zeros(2, 6, 6, dtype=torch.float64)
    scores[:, 0] = 5.0
    loose, tight = make(noise="none"), make(noise="none", single_root=True)
    assert (loose.discrete(scores)[:, 0].sum(-1) == 5).all()
    assert (tight.discrete(scores)[:, 0].sum(-1) == 1).all()
    assert (loose.soft(scores)[:, 0].sum(-1) > 3).all()
    assert error(tight.soft(scores)[:, 0].sum(-1), torch.ones(2)) < EXACT


def test_heads_may_cross_and_run_in_circles_and_trees_may_not():
    scores = torch.zeros(5, 5, dtype=torch.float64)
    for head, modifier in [(2, 1), (1, 2), (1, 3), (2, 4)]:
        scores[head, modifier] = 9.0
    heads = tree_to_heads(make(structure="heads").discrete(scores))
    assert heads.tolist() == [2, 1, 1, 2]
    assert not is_tree(heads)
    heads = tree_to_heads(make().discrete(scores))
    assert is_tree(heads)
    assert is_projective(heads)


# ── straight-through ─────────────────────────────────────────────────────────────────────────────


@every_structure
@every_noise
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_straight_through_is_exactly_the_discrete_tree_of_the_perturbed_scores(
    structure, noise, dtype
):
    layer = make(structure=structure, noise=noise, straight_through=True, temperature=0.9).to(dtype)
    vectors = make_vectors(40).to(dtype)
    lengths = torch.arange(40) % 5 + 1
    scores = layer.scorer(vectors).detach()
    perturbed = scores + perturbation(noise, scores, lengths, generator=seeded())
    tree = layer(vectors, lengths, generator=seeded())
    assert tree.requires_grad
    assert set(tree.detach().unique().tolist()) == {0.0, 1.0}
    assert torch.equal(tree, layer.discrete(perturbed, lengths))


@pytest.mark.parametrize(
    ("structure", "single_root"), [("projective", False), ("projective", True), ("heads", False)]
)
@every_noise
def test_straight_through_has_the_gradient_of_the_soft_tree(structure, single_root, noise):
    weight = make_vectors() @ torch.randn(4, 6, dtype=torch.float64, generator=seeded(1))
    grads = []
    for straight_through in (False, True):
        layer = make(
            structure=structure,
            noise=noise,
            straight_through=straight_through,
            single_root=single_root,
        )
        vectors = make_vectors().requires_grad_()
        tree = layer(vectors, LENGTHS, generator=seeded())
        grads.append(torch.autograd.grad(tree, [vectors, *layer.parameters()], weight))
    for soft, straight in zip(*grads, strict=True):
        assert soft.abs().max() > 0
        assert torch.equal(soft, straight)


# ── shapes, gradients, compilation ───────────────────────────────────────────────────────────────


@every_structure
@pytest.mark.parametrize("straight_through", [False, True])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("batch", [(), (1,), (2, 3), (2, 1, 3), (0,)])
def test_any_leading_shape(structure, straight_through, training, batch):
    layer = make(structure=structure, straight_through=straight_through).train(training)
    vectors = torch.randn(*batch, 6, 4, dtype=torch.float64, generator=seeded(2))
    lengths = torch.randint(1, 6, batch, generator=seeded(3))
    tree = layer(vectors, lengths, generator=seeded())
    assert tree.shape == (*batch, 6, 6)
    flat = layer(vectors.reshape(-1, 6, 4), lengths.reshape(-1), generator=seeded())
    assert error(tree.reshape(flat.shape), flat) < EXACT


@every_structure
def test_no_lengths_is_no_padding(structure):
    layer, vectors = make(structure=structure), make_vectors()
    full = torch.tensor([5, 5, 5])
    for mode in (True, False):
        layer.train(mode)
        got = layer(vectors, generator=seeded())
        assert torch.equal(got, layer(vectors, full, generator=seeded()))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"relaxation": "entropy"},
        {"single_root": True, "temperature": 0.8},
        {"relaxation": "entropy", "single_root": True, "noise": "sum-of-gamma"},
        {"structure": "heads"},
    ],
    ids=str,
)
def test_gradients(options):
    """By finite differences, noise and all, for vectors and every parameter of the scorer."""
    layer = make(**options)
    names, weights = zip(*layer.named_parameters(), strict=True)
    vectors = make_vectors()[:2, :5].clone().requires_grad_()
    lengths = torch.tensor([4, 2])

    def run(vectors, *weights):
        named = dict(zip(names, weights, strict=True))
        return functional_call(layer, named, (vectors, lengths), {"generator": seeded()})

    assert torch.autograd.gradcheck(run, (vectors, *weights))


@pytest.mark.parametrize(
    ("structure", "noise", "straight_through"),
    [
        ("projective", "gumbel", False),
        ("projective", "sum-of-gamma", True),
        ("heads", "gumbel", True),
    ],
)
def test_compiles_whole(structure, noise, straight_through):
    """One graph, the same numbers; the noise is torch's own."""
    torch._dynamo.reset()
    layer = make(structure=structure, noise=noise, straight_through=straight_through)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    weight = torch.randn(3, 6, 6, dtype=torch.float64, generator=seeded(1))
    results = []
    for function in (layer, compiled):
        vectors = make_vectors().requires_grad_()
        torch.manual_seed(5)
        tree = function(vectors, LENGTHS)
        results.append((tree, *torch.autograd.grad(tree, [vectors, *layer.parameters()], weight)))
    for expected, got in zip(*results, strict=True):
        assert error(got, expected) < EXACT
    if straight_through:
        assert torch.equal(results[0][0], results[1][0])
    layer.eval()
    assert torch.equal(compiled(make_vectors(), LENGTHS), layer(make_vectors(), LENGTHS))


def test_compiles_whole_for_any_shape():
    torch._dynamo.reset()
    layer = make(noise="none")
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch, n in [(3, 5), (4, 7)]:
        vectors = torch.randn(batch, n + 1, 4, dtype=torch.float64, generator=seeded(n))
        lengths = torch.arange(batch) + 1
        assert error(compiled(vectors, lengths), layer(vectors, lengths)) < EXACT


# torch's own look at a tensor behind the break warns, and it means to hide that
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_compiles_around_a_generator():
    """A generator cannot enter the graph: torch breaks it there and the numbers stay."""
    torch._dynamo.reset()
    layer, vectors = make(), make_vectors()
    compiled = torch.compile(layer, backend="aot_eager")
    got = compiled(vectors, LENGTHS, generator=seeded())
    assert error(got, layer(vectors, LENGTHS, generator=seeded())) < EXACT


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


class Given(nn.Module):
    """A scorer that says what it was told."""

    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def forward(self, vectors):
        return self.scores


@every_structure
@pytest.mark.parametrize("training", [True, False])
def test_values_are_checked_on_the_cpu_unless_told_not_to(structure, training):
    nothing_left = torch.zeros(1, 4, 4)
    nothing_left[0, :, 2] = -torch.inf
    broken = torch.full((1, 4, 4), torch.nan)
    vectors = torch.zeros(1, 4, 8)
    for scores, said in [(nothing_left, NoTreeError), (broken, InputError)]:
        loose = LatentTree(Given(scores), structure=structure, validate=False).train(training)
        assert scores is nothing_left or loose(vectors).isnan().any()
        with pytest.raises(said):
            LatentTree(Given(scores), structure=structure).train(training)(vectors)


def test_the_distribution_behind_the_layer():
    layer = LatentTree(ArcScorer(4, 6), single_root=True)
    vectors, lengths = torch.randn(2, 5, 4), torch.tensor([4, 2])
    trees = layer.distribution(vectors, lengths)
    assert torch.equal(trees.mode, layer.eval()(vectors, lengths))
    assert (trees.mode[:, 0].sum(-1) == 1).all()
    trees.log_prob(trees.mode).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


def test_a_batch_without_words():
    layer = LatentTree(ArcScorer(4, 6))
    assert layer(torch.randn(2, 1, 4), torch.tensor([0, 0])).tolist() == [[[0.0]], [[0.0]]]


SCORER = ArcScorer(4, 6)
LAYER = LatentTree(SCORER)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: LatentTree(lambda v: v), "scorer is a function"),
        (lambda: LatentTree(SCORER, structure="head"), "Did you mean 'heads'"),
        (lambda: LatentTree(SCORER, relaxation="entropic"), "Did you mean 'entropy'"),
        (lambda: LatentTree(SCORER, noise="gumble"), "Did you mean 'gumbel'"),
        (lambda: LatentTree(SCORER, temperature=0.0), "temperature is 0.0"),
        (lambda: LatentTree(SCORER, temperature=float("nan")), "temperature is nan"),
        (lambda: LatentTree(SCORER, noise_scale=-1.0), "noise_scale is -1.0"),
        (lambda: LatentTree(SCORER, structure="heads", single_root=True), "single_root is True"),
        (lambda: LAYER(torch.zeros(4)), r"\(4,\); expected \(\.\.\., n \+ 1, d\)"),
        (lambda: LAYER(torch.zeros(2, 5, 3)), r"\(2, 5, 3\); expected \(\.\.\., n \+ 1, 4\)"),
        (lambda: LAYER("words"), "vectors is a str"),
        (lambda: LAYER(torch.zeros(2, 0, 4)), r"\(2, 0, 4\).*nn\.Root"),
        (lambda: LAYER(torch.zeros(2, 5, 4), [4, 2]), "lengths is a list"),
        (lambda: LAYER(torch.zeros(2, 5, 4), torch.ones(2, 4).bool()), r"mask\.sum\(-1\)"),
        (lambda: LAYER(torch.zeros(2, 5, 4), torch.tensor([4])), r"\(1,\); expected \(2,\)"),
        (lambda: LAYER(torch.zeros(2, 5, 4), torch.tensor([[4], [2]])), r"expected \(2,\)"),
        (lambda: LAYER(torch.zeros(2, 5, 4), torch.tensor([4.0, 2.0])), "float32"),
        (
            lambda: LAYER(torch.zeros(2, 5, 4), torch.ones(2, dtype=torch.long, device="meta")),
            "meta; expected cpu",
        ),
        (
            lambda: LatentTree(Given(torch.zeros(2, 4, 5)))(torch.zeros(2, 5, 4)),
            r"scorer made \(2, 4, 5\).*expected \(2, 5, 5\)",
        ),
        (lambda: LatentTree(Given(None))(torch.zeros(2, 5, 4)), "scorer made NoneType"),
    ],
)
def test_what_is_refused(call, said):
    with pytest.raises(InputError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert "expected" in str(caught.value)


def test_its_settings_show():
    shown = repr(make(noise="sum-of-gamma", temperature=0.5, straight_through=True))
    for setting in ("SumOfGamma(scale=1.0", "temperature=0.5", "StraightThrough("):
        assert setting in shown
