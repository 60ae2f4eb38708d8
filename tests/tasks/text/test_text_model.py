"""Sentence models: the paper's sizes, every kind of trees, padding, types."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tiny_texts import tiny_model
from tolerances import EXACT, VALUE_F32, largest_error
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call

from treelax.errors import InputError
from treelax.estimators import Relaxed, StraightThrough
from treelax.noise import SumOfGamma, perturbation
from treelax.ops import best_tree, select_heads, soft_tree
from treelax.structures import Projective
from treelax.structures import heads as heads_module
from treelax.structures import projective as projective_module
from treelax.tasks.text.config import ModelConfig
from treelax.tasks.text.encoder import SentenceEncoder, Sentences
from treelax.tasks.text.model import ClassModel, PairModel, TagModel
from treelax.tasks.text.presets import preset
from treelax.trees import heads_to_tree, is_projective, is_tree, tree_to_heads

KINDS = ["none", "intra", "latent", "heads", "chain", "given"]
WITH_TREES = KINDS[2:]
every_kind = pytest.mark.parametrize("trees", KINDS)
every_kind_with_trees = pytest.mark.parametrize("trees", WITH_TREES)
with_and_without_lstm = pytest.mark.parametrize("lstm", ["none", "bilstm"])

LENGTHS = torch.tensor([5, 3, 1])
# one with two roots and crossing arcs; the padding holds what is no head
HEADS = torch.tensor([[3, 4, 0, 0, 1], [2, 0, 2, 9, 9], [0, -1, -1, -1, -1]])


def table(rows: int = 9, size: int = 4, dtype: torch.dtype = torch.float32) -> Tensor:
    values = torch.randn(rows, size, generator=torch.Generator().manual_seed(1)).to(dtype)
    values[0] = 0
    return values


def batch(*, more: int = 0) -> Sentences:
    """Three sentences, padded to five words and some more."""
    ids = torch.tensor([[2, 3, 4, 5, 6], [7, 8, 2, 0, 0], [3, 0, 0, 0, 0]])
    pad = nn.functional.pad
    return Sentences(pad(ids, (0, more)), LENGTHS, pad(HEADS, (0, more), value=-1))


def seeded(seed: int = 2) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def settled(model: nn.Module) -> nn.Module:
    """A model with no weight at its initial value, but for the LSTM's: some close it to padding."""
    generator = seeded(4)
    for name, parameter in model.named_parameters():
        if "stacks" not in name:
            parameter.data = 0.5 * torch.randn(parameter.shape, generator=generator).to(parameter)
    return model


def encoder(**changes: object) -> SentenceEncoder:
    torch.manual_seed(0)
    return SentenceEncoder(tiny_model(**changes), table())


def words_of(vectors: Tensor) -> list[Tensor]:
    return [row[:length] for row, length in zip(vectors, LENGTHS.tolist(), strict=True)]


# ------------------------------------------------------------------ the paper's sizes


def count(model: nn.Module) -> int:
    """Parameters without learned words, root and distance bias, as PAPER_NOTES counts them."""
    left_out = ("embedding.learned", "root.vector", "scorer.distance")
    return sum(p.numel() for name, p in model.named_parameters() if not name.endswith(left_out))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("snli-none", 382_003),
        ("snli-intra", 582_403),
        ("snli-tree-1", 703_003),
        ("snli-tree-2", 1_063_603),
        ("multinli-tree-2", 1_063_603),
        ("snli-heads-2", 1_063_603),  # head selection has the same network
        ("snli-chain-1", 703_003 - 2 * 40_200),  # and a chain needs no scores
    ],
)
def test_the_papers_numbers_of_parameters(name: str, parameters: int) -> None:
    config = preset(name).model
    assert count(PairModel(config, table(103, 300), 3)) == parameters


def test_what_the_count_leaves_out() -> None:
    model = PairModel(preset("snli-tree-1").model, table(103, 300), 3)
    every = sum(p.numel() for p in model.parameters())
    assert every - count(model) == 300 + 200 + 23  # NULL, root, distances -11 to 11


def test_two_layers_in_the_scorer_as_the_appendix_has_it() -> None:
    config = replace(preset("snli-tree-2").model, scorer_layers=2)
    assert count(PairModel(config, table(103, 300), 3)) == 1_063_603 + 2 * 40_200


# ------------------------------------------------------------------ every kind of trees


@every_kind
@with_and_without_lstm
@pytest.mark.parametrize("training", [True, False])
def test_shapes(trees: str, lstm: str, training: bool) -> None:
    model = encoder(trees=trees, encoder=lstm).train(training)
    vectors, tree = model(batch(), generator=seeded())
    assert vectors.shape == (3, 5, model.output_size)
    for sentence in words_of(vectors):
        assert sentence.isfinite().all()
    if trees in ("none", "intra"):
        assert tree is None
    else:
        assert tree.shape == (3, 6, 6)
        inside = torch.arange(1, 6) <= LENGTHS[:, None]
        assert largest_error(tree.detach().sum(-2)[:, 1:], inside) < VALUE_F32
        assert not tree[..., 0].any()


def test_sizes_of_the_output() -> None:
    assert encoder(trees="none").output_size == 12
    assert encoder(trees="none", projection_size=None).output_size == 4
    assert encoder(trees="none", encoder="bilstm").output_size == 12
    assert encoder(trees="intra").output_size == 24
    assert encoder(trees="chain", gcn_layers=3).output_size == 12 + 3 * 8
    assert encoder(trees="chain", gcn_layers=3, dense=False).output_size == 8


def test_without_trees_words_are_embedding_projection_and_bilstm() -> None:
    model = encoder(trees="none", encoder="bilstm").eval()
    vectors, _ = model(batch())
    assert model.projection is not None
    assert model.encoder is not None
    expected = model.encoder(model.projection(table()[batch().ids]), LENGTHS)
    assert torch.equal(vectors, expected)
    assert torch.equal(model.words(batch()), expected)


def test_intra_attention_is_over_words_without_a_root() -> None:
    model = encoder(trees="intra").eval()
    vectors, tree = model(batch())
    assert tree is None
    assert model.intra is not None
    assert torch.equal(vectors, model.intra(model.words(batch()), LENGTHS))


@every_kind_with_trees
def test_the_gcn_runs_over_the_tree(trees: str) -> None:
    model = encoder(trees=trees).eval()
    vectors, tree = model(batch())
    assert model.gcn is not None
    assert model.root is not None
    expected = model.gcn(model.root(model.words(batch())), tree)[:, 1:]
    assert torch.equal(vectors, expected)


def test_latent_trees() -> None:
    model = settled(encoder(trees="latent"))
    scores = model.scores(batch())
    assert scores.shape == (3, 6, 6)
    sampled = model(batch(), generator=seeded())[1]
    perturbed = scores + perturbation("gumbel", scores, LENGTHS, generator=seeded())
    assert torch.equal(sampled, soft_tree(perturbed, LENGTHS))
    tree = model.eval()(batch())[1]
    assert torch.equal(tree, best_tree(scores, LENGTHS))
    heads = tree_to_heads(tree, LENGTHS)
    assert is_tree(heads, LENGTHS).all()
    assert is_projective(heads, LENGTHS).all()
    soft = model(batch(), soft=True)[1]
    assert torch.equal(soft, soft_tree(scores, LENGTHS))
    assert largest_error(soft.detach(), tree.detach()) > 1e-3


def test_chosen_heads() -> None:
    model = settled(encoder(trees="heads", temperature=0.5))
    scores = model.scores(batch())
    sampled = model(batch(), generator=seeded())[1]
    perturbed = scores + perturbation("gumbel", scores, LENGTHS, generator=seeded())
    assert torch.equal(sampled, select_heads(perturbed, LENGTHS, temperature=0.5))
    model.eval()
    assert torch.equal(model(batch())[1], select_heads(scores, LENGTHS, hard=True))
    assert torch.equal(model(batch(), soft=True)[1], select_heads(scores, LENGTHS, temperature=0.5))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("soft", [True, False])
def test_chains_and_given_trees_are_the_same_in_every_mode(training: bool, soft: bool) -> None:
    chain = encoder(trees="chain").train(training)(batch(), soft=soft)[1]
    left = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1], [0, -1, -1, -1, -1]])
    assert torch.equal(chain, heads_to_tree(left, LENGTHS))
    given = encoder(trees="given").train(training)(batch(), soft=soft)[1]
    assert torch.equal(given, heads_to_tree(HEADS, LENGTHS))
    assert not is_projective(HEADS, LENGTHS).all()


def test_soft_is_for_evaluation_only() -> None:
    model = encoder(trees="latent")
    plain, soft = (model(batch(), soft=s, generator=seeded())[1] for s in (False, True))
    assert torch.equal(plain, soft)


def test_settings_reach_the_tree_layer() -> None:
    options = {
        "relaxation": "entropy",
        "temperature": 0.5,
        "noise": "sum-of-gamma",
        "straight_through": True,
        "single_root": True,
    }
    model = encoder(trees="latent", **options)
    relaxed = Relaxed("entropy", 0.5, SumOfGamma())
    assert model.tree.estimator == StraightThrough(relaxed)
    assert model.tree.structure == Projective(single_root=True)
    tree = model(batch(), generator=seeded())[1]
    assert torch.equal(tree.detach(), tree.detach().round())
    assert tree.detach()[:, 0].sum(-1).tolist() == [1, 1, 1]


def test_given_trees_must_be_given() -> None:
    model = encoder(trees="given")
    with pytest.raises(InputError, match=r"the data have no trees; .* give --set data\.trees="):
        model(replace(batch(), heads=None))
    assert encoder(trees="chain")(replace(batch(), heads=None))[1] is not None


@pytest.mark.parametrize("trees", ["none", "intra", "chain", "given"])
def test_only_latent_trees_have_scores(trees: str) -> None:
    with pytest.raises(InputError, match=f"model.trees is '{trees}'; expected 'latent' or 'heads'"):
        encoder(trees=trees).scores(batch())


def test_unused_parts_are_not_built() -> None:
    names = {name.split(".")[0] for name, _ in encoder(trees="chain").named_parameters()}
    assert names == {"embedding", "projection", "root", "gcn"}
    names = {name.split(".")[0] for name, _ in encoder(trees="none").named_parameters()}
    assert names == {"embedding", "projection"}


# ------------------------------------------------------------------ padding and gradients


@every_kind
@with_and_without_lstm
def test_padding_and_company_change_nothing(trees: str, lstm: str) -> None:
    model = settled(encoder(trees=trees, encoder=lstm, noise="none").double())
    for training in (True, False):
        model.train(training)
        together, tree = model(batch())
        wide, wide_tree = model(batch(more=3))
        for i, length in enumerate(LENGTHS.tolist()):
            one = Sentences(
                batch().ids[i : i + 1, :length], LENGTHS[i : i + 1], HEADS[i : i + 1, :length]
            )
            alone, alone_tree = model(one)
            for vectors, its_tree in ((together, tree), (wide, wide_tree)):
                error = largest_error(vectors[i, :length].detach(), alone[0].detach())
                assert error < EXACT
                if its_tree is not None:
                    size = length + 1
                    part = its_tree[i, :size, :size].detach()
                    assert largest_error(part, alone_tree[0].detach()) < EXACT


@every_kind
def test_padding_changes_no_gradient(trees: str) -> None:
    model = settled(ClassModel(tiny_model(trees=trees, noise="none"), table(), 2).double())
    gradients = []
    for more in (0, 4):
        model(batch(more=more)).sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
        model.zero_grad()
    assert gradients[0]
    for narrow, wide in zip(*gradients, strict=True):
        assert largest_error(wide, narrow) < EXACT


@every_kind
def test_every_parameter_gets_a_gradient(trees: str) -> None:
    model = settled(
        PairModel(tiny_model(trees=trees, encoder="bilstm", learned_words=8), table(), 3)
    )
    model(batch(), batch(), generator=seeded()).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("trees", ["latent", "intra"])
def test_gradients_of_a_whole_model(trees: str) -> None:
    sizes = {name: 3 for name in ("projection_size", "scorer_size", "gcn_size", "output_size")}
    config = ModelConfig(**sizes, trees=trees, dropout=0.0, noise="none", gcn_layers=1)
    model = settled(PairModel(config, table(size=3), 2).double())
    names, values = zip(*model.named_parameters(), strict=True)

    def run(*parameters: Tensor) -> Tensor:
        return functional_call(model, dict(zip(names, parameters, strict=True)), (batch(), batch()))

    assert gradcheck(run, values, fast_mode=True)


def test_dropout_of_words_and_layers() -> None:
    for options in ({"input_dropout": 0.5}, {"dropout": 0.5}, {"word_dropout": 0.5}):
        model = encoder(trees="none", **options)
        torch.manual_seed(0)
        assert not torch.equal(model(batch())[0], model(batch())[0])
        model.eval()
        assert torch.equal(model(batch())[0], model(batch())[0])


# ------------------------------------------------------------------ types


@pytest.mark.parametrize("trees", ["latent", "heads"])
@pytest.mark.parametrize("mode", ["train", "eval", "soft"])
def test_trees_are_float32_in_half_precision(
    trees: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under autocast the scores are made in bfloat16; noise and trees are not."""
    seen = []
    module = projective_module if trees == "latent" else heads_module
    for name in ("soft_tree", "best_tree") if trees == "latent" else ("select_heads",):
        operation = getattr(module, name)

        def spy(scores: Tensor, *args: object, operation=operation, **options: object) -> Tensor:
            seen.append(scores)
            return operation(scores, *args, **options)

        monkeypatch.setattr(module, name, spy)
    model = settled(encoder(trees=trees)).train(mode == "train")
    with torch.autocast("cpu", torch.bfloat16):
        scores = model.scores(batch())
        vectors, tree = model(batch(), soft=mode == "soft", generator=seeded())
    assert vectors.dtype == torch.bfloat16
    assert scores.dtype == tree.dtype == torch.float32
    assert torch.equal(scores.bfloat16().float(), scores)
    assert [s.dtype for s in seen] == [torch.float32]
    if mode == "train":  # the noise was not rounded
        noise = perturbation("gumbel", scores, LENGTHS, generator=seeded())
        assert torch.equal(seen[0], scores + noise)
        assert not torch.equal(seen[0].bfloat16().float(), seen[0])


@every_kind
def test_training_in_half_precision(trees: str) -> None:
    model = ClassModel(tiny_model(trees=trees, encoder="bilstm"), table(dtype=torch.float16), 2)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(batch(), generator=seeded())
        tree = model.encoder(batch())[1]
    assert logits.dtype == torch.bfloat16
    assert tree is None or tree.dtype == torch.float32
    logits.float().square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@every_kind
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_to_another_type(trees: str, dtype: torch.dtype) -> None:
    """Also with no learned word, whose type the vectors could have."""
    model = encoder(trees=trees, learned_words=0, encoder="bilstm").to(dtype)
    vectors, tree = model(batch(), generator=seeded())
    assert vectors.dtype == dtype
    if tree is not None:
        assert tree.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


# ------------------------------------------------------------------ the three models


@every_kind
def test_pairs(trees: str) -> None:
    model = settled(PairModel(tiny_model(trees=trees, pooling="sum"), table(), 3)).eval()
    first, second = batch(), batch(more=1)
    logits = model(first, second)
    assert logits.shape == (3, 3)
    a, b = model.encoder(first)[0], model.encoder(second)[0]
    assert torch.equal(logits, model.head(a, LENGTHS, b, LENGTHS))
    assert model.head.pooling == "sum"


@every_kind
def test_classes_by_a_slow_maximum(trees: str) -> None:
    """Vectors without trees may be negative, so padding must not count as 0."""
    model = settled(ClassModel(tiny_model(trees=trees, encoder="bilstm"), table(), 2)).eval()
    vectors = model.encoder(batch(more=2))[0]
    pooled = torch.stack([words.max(0).values for words in words_of(vectors)])
    if trees == "none":
        assert (pooled < 0).any()
    expected = model.output(model.hidden(pooled))
    assert torch.equal(model(batch(more=2)), expected)


@every_kind
def test_tags(trees: str) -> None:
    model = settled(TagModel(tiny_model(trees=trees), table(), 7)).eval()
    logits = model(batch())
    assert logits.shape == (3, 5, 7)
    vectors = model.encoder(batch())[0]
    assert torch.equal(logits, model.output(model.hidden(vectors)))


@pytest.mark.parametrize("kind", [ClassModel, TagModel])
def test_soft_trees_and_generators_reach_the_encoder(kind: type[nn.Module]) -> None:
    model = settled(kind(tiny_model(), table(), 3))
    one, same, other = (model(batch(), generator=seeded(s)) for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    model.eval()
    assert not torch.equal(model(batch(), soft=True), model(batch()))


def test_soft_trees_and_generators_reach_both_texts() -> None:
    model = settled(PairModel(tiny_model(), table(), 3))
    one, same, other = (model(batch(), batch(), generator=seeded(s)) for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    model.eval()
    assert not torch.equal(model(batch(), batch(), soft=True), model(batch(), batch()))
