"""What every sentence task gives the training loop: batches, a loss, dev figures, groups."""

from __future__ import annotations

import math
from collections import Counter
from typing import get_args, get_type_hints

import pytest
import torch
from sentence_runs import SNLI_SAMPLE, prepared
from tiny_transformers import bert
from torch.nn import functional as F

from treelax.apps.tasks.settings import EstimatorSettings
from treelax.apps.tasks.text.model import both
from treelax.apps.tasks.text.task import divergence
from treelax.errors import InputError

KINDS = ("classify", "pair", "tag")
every_kind = pytest.mark.parametrize("kind", KINDS)
every_task = pytest.mark.parametrize("kind", [*KINDS, "parser"])
UNLABELLED = {"data.labelled": 0.5, "data.rest": "unlabelled", "unlabelled.warm_up": 0}
VARIANTS = [
    *(("classify", {"model.trees": t}) for t in ("none", "intra", "latent", "heads", "chain")),
    ("classify", {"model.structure": "binary", "data.null": True}),
    *(("pair", {"model.trees": t}) for t in ("none", "latent")),
    *(("tag", {"data.null": null}) for null in (True, False)),
    *(("tag", {"data.null": null, "model.output": "chain"}) for null in (True, False)),
    ("parser", {}),
    ("parser", {"model.loss": "labelled", "model.structure": "projective"}),
    ("parser", {"model.loss": "unlabelled", "model.structure": "projective"}),
    ("parser", {"model.loss": "heads", "model.structure": "heads", "data.tags": "upos"}),
    ("parser", {"model.single_root": False, "model.filters": 0}),
    # neither hidden words nor samples, which would be others
    ("parser", UNLABELLED | {"unlabelled.decoder": "arcs", "unlabelled.estimator": "marginals"}),
]


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory):
    pytest.importorskip("transformers")
    return bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def task(request, tmp_path, kind, settings):
    """An experiment of a variant, in its first epoch."""
    if "model.pretrained" in settings:
        settings = {"model.pretrained": request.getfixturevalue("bert_folder")}
        settings |= {} if kind == "parser" else {"model.encoder": "transformer"}
    task = prepared(kind, tmp_path, **settings)
    task.begin(1)
    return task


TRANSFORMERS = [(kind, {"model.pretrained": "bert"}) for kind in (*KINDS, "parser")]
every_variant = pytest.mark.parametrize(("kind", "settings"), VARIANTS)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def wider(shape):
    return tuple(length + 3 for length in shape)


# ------------------------------------------------------------------ batches and weights


@every_task
def test_batches_of_one_pass(tmp_path, kind):
    task = prepared(kind, tmp_path)
    batches = task.batches(seed=1)
    assert len(batches) == task.updates
    assert {len(indices) for _, indices in batches} == {task.config.train.batch_size}
    drawn = torch.cat([indices for _, indices in batches])
    assert len(drawn.unique()) == len(drawn)
    assert torch.equal(torch.cat([indices for _, indices in task.batches(seed=1)]), drawn)
    assert not torch.equal(torch.cat([indices for _, indices in task.batches(seed=2)]), drawn)
    task.device = torch.device("cuda")  # nothing is put there, but there are fewer shapes
    for (shape, indices), (rounded, same) in zip(batches, task.batches(seed=1), strict=True):
        assert torch.equal(indices, same)
        assert all(n <= m < n + 8 and m % 4 == 0 for n, m in zip(shape, rounded, strict=True))


def test_a_number_of_updates_takes_as_many_passes_as_it_needs(tmp_path):
    batches = prepared("pair", tmp_path, train__updates=7, train__batch_size=20).batches(seed=0)
    counts = Counter(torch.cat([indices for _, indices in batches]).tolist())
    assert len(batches) == 7
    assert set(counts) == set(range(48))
    assert set(counts.values()) <= {2, 3, 4}


@pytest.mark.parametrize(("share", "mixed"), [(1.0, 4), (0.5, 2), (0.1, 0)])
def test_a_share_of_what_is_mixed_in(tmp_path, share, mixed):
    settings = {"data.mix": SNLI_SAMPLE, "data.mix_share": share, "train.batch_size": 1}
    rows = ["neutral\tA dog .\tIt .", "entailment\tA dog .\tA dog .", "contradiction\tNo .\tHe ."]
    for split in ("train", "dev"):
        file = tmp_path / f"mnli_{split}.tsv"
        file.write_text("\n".join(["label\tq\ta", *rows, ""]))
        settings[f"data.{split}"] = file
    settings["data.test"] = "none"
    if not mixed:
        with pytest.raises(InputError, match=r"mix_share is 0.1, less than one of the 4"):
            prepared("pair", tmp_path, **settings)
        return
    task = prepared("pair", tmp_path, **settings)
    assert task.updates == 3 + mixed
    chosen = []
    for seed in range(6):
        drawn = torch.cat([indices for _, indices in task.batches(seed)]).tolist()
        assert {0, 1, 2} <= set(drawn)
        chosen.append(frozenset(i for i in drawn if i >= 3))
        assert len(set(drawn)) == len(drawn) == 3 + mixed
    assert len(set(chosen)) > 1 if mixed == 2 else len(set(chosen)) == 1


@pytest.mark.parametrize("kind", ["tag", "parser"])
def test_the_seed_decides_the_initial_weights(tmp_path, kind):
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    one, same, other = (prepared(kind, tmp_path, seed=s).model.state_dict() for s in (3, 3, 9))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(same[name], value) for name, value in one.items())
    assert any(not torch.equal(other[name], value) for name, value in one.items())


@every_task
def test_groups_hold_every_parameter_once(tmp_path, kind):
    changes = {} if kind == "parser" else {"train.weight_decay": 0.5, "model.encoder": "bilstm"}
    task = prepared(kind, tmp_path, **changes)
    grouped = [(id(p), group) for group in task.groups() for p in group["params"]]
    assert sorted(number for number, _ in grouped) == sorted(map(id, task.model.parameters()))
    if kind != "parser":
        # biases, vectors of words and the LSTM's gates, which keep padding out, do not shrink
        shrinks = {number for number, group in grouped if group["weight_decay"]}
        for name, parameter in task.model.named_parameters():
            fixed = parameter.dim() == 1 or "embedding" in name or "stacks" in name
            assert (id(parameter) in shrinks) != fixed or "stacks" in name, name


# ------------------------------------------------------------------ the loss


@pytest.mark.parametrize(("kind", "settings"), VARIANTS + TRANSFORMERS)
def test_a_loss_is_the_mean_of_its_examples_whatever_the_padding(task):
    task.model.train(task.task != "parser" and "transformer" not in str(task.model))
    shape, indices = task.batches(seed=2)[0]
    ones = [(task.loss(shape, i, seeded()), task.loss_weight(shape, i)) for i in indices[:, None]]
    expected = sum(loss * weight for loss, weight in ones) / sum(weight for _, weight in ones)
    assert expected > 0
    for padded in (shape, wider(shape)):
        loss = task.loss(padded, indices, seeded())
        assert loss.shape == ()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-4)


@every_variant
def test_a_batch_can_be_learned(task):
    optimizer = torch.optim.Adam(task.groups(), lr=0.02)
    shape, indices = task.batches(seed=0)[0]
    first = loss = task.loss(shape, indices, seeded())
    for _ in range(60):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = task.loss(shape, indices, seeded())
        if loss < 0.5 * first:
            return
    raise AssertionError(f"the loss was {first.item()} and is {loss.item()}")


@every_kind
def test_without_an_answer_a_label_costs_the_logarithm_of_their_number(tmp_path, kind):
    task = prepared(kind, tmp_path)
    *_, last = [p for name, p in task.model.named_parameters() if name.endswith("output.weight")]
    for parameter in task.model.parameters():
        if parameter is last or parameter.shape == last.shape[:1]:
            torch.nn.init.zeros_(parameter)
    loss = task.loss(*task.batches(seed=0)[0], seeded())
    assert loss.item() == pytest.approx(math.log(len(task.labels)), rel=1e-5)


@every_kind
@pytest.mark.parametrize(("setting", "scale"), [("label_smoothing", 1), ("consistency", 1000)])
def test_smoothing_and_consistency_are_linear_in_their_weight(tmp_path, kind, setting, scale):
    losses = []
    for weight in (0.2, 0.4, 0.8):
        changes = {f"train.{setting}": scale * weight, "model.noise": "gumbel"}
        task = prepared(kind, tmp_path, **changes)
        losses.append(task.loss(*task.batches(seed=0)[0], seeded(1)).item())
    assert losses[2] - losses[1] == pytest.approx(2 * (losses[1] - losses[0]), rel=1e-2, abs=1e-6)
    assert abs(losses[1] - losses[0]) > 1e-4


def test_consistency_is_the_symmetric_divergence_of_two_answers():
    first, second = torch.randn(2, 5, 3, dtype=torch.float64, generator=seeded())
    targets = torch.tensor([0, -1, 2, 1, -1])
    inputs = (first.clone().requires_grad_(), second.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: divergence(a, b, targets), inputs)
    log_p, log_q = (x[targets >= 0].log_softmax(-1) for x in (first, second))
    sides = [
        F.kl_div(a, b, reduction="batchmean", log_target=True)
        for a, b in ((log_p, log_q), (log_q, log_p))
    ]
    torch.testing.assert_close(divergence(first, second, targets).sum() / 3, sum(sides) / 2)


@every_kind
def test_the_last_epochs_have_the_trees_that_are_used_afterwards(tmp_path, kind):
    changes = {"model.noise": "gumbel", "train.epochs": 5, "train.discrete_epochs": 2}
    task = prepared(kind, tmp_path, **changes)
    assert [task.begin(epoch) for epoch in range(1, 6)] == [False] * 3 + [True] * 2
    batch = task.batches(seed=0)[0]
    losses = [task.loss(*batch, seeded(seed)) for seed in (1, 2)]
    assert losses[0] == losses[1]
    losses[0].backward()
    for name, parameter in task.model.named_parameters():
        if "tree.scorer" in name:  # the parser still learns
            assert parameter.grad is not None, name
            assert parameter.grad.any(), name
    assert task.loss(*batch, seeded()) == task.loss(*batch, seeded())
    # a run that goes on from an earlier epoch has noise again
    assert not task.begin(3)
    assert len({task.loss(*batch, seeded(seed)).item() for seed in (1, 2)}) == 2


def test_half_precision_is_that_of_the_layers(tmp_path):
    plain, half = (prepared("pair", tmp_path, train__precision=p) for p in ("float32", "bf16"))
    losses = [task.loss(*plain.batches(seed=0)[0], seeded()) for task in (plain, half)]
    assert [loss.dtype for loss in losses] == [torch.float32] * 2
    assert losses[0].item() != losses[1].item()
    assert losses[0].item() == pytest.approx(losses[1].item(), abs=0.02)
    losses[1].backward()
    for name, parameter in half.model.named_parameters():
        assert parameter.dtype == parameter.grad.dtype == torch.float32, name
        assert parameter.grad.isfinite().all(), name


# ------------------------------------------------------------------ estimators

NAMES = [n for n in get_args(get_type_hints(EstimatorSettings)["name"]) if n != "exact"]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, name) for kind in KINDS for name in NAMES),
        # of unlabelled sentences
        *(("parser", name) for name in NAMES if name not in ("sparsemap", "perturbed")),
    ],
)
def test_every_estimator_trains_all_layers(tmp_path, kind, name):
    changes = {"model.estimator": name, "model.noise": "default"}
    if kind == "parser":
        changes = UNLABELLED | {"unlabelled.estimator": name}
    task = prepared(kind, tmp_path, **changes)
    task.begin(1)
    shape, indices = task.batches(seed=0)[0]
    if kind == "parser":  # the sentences without trees, alone
        torch.nn.init.normal_(task.model.tree.scorer.weight)
        indices = indices[indices >= task.labelled]
        assert len(indices) == task.config.train.batch_size
    for _ in range(2):  # the first loss that reinforce sees is its baseline
        task.model.zero_grad()
        loss = task.loss(shape, indices, seeded(1))
        loss.backward()
    assert loss.isfinite()
    gradients = {n: p.grad for n, p in task.model.named_parameters() if p.grad is not None}
    assert all(gradient.isfinite().all() for gradient in gradients.values())
    for part in ("tree.scorer", "decoder" if kind == "parser" else "gcn"):
        assert any(gradient.any() for n, gradient in gradients.items() if part in n), part


@pytest.mark.parametrize("kind", ["classify", "pair"])
def test_two_trees_that_share_a_loss_get_its_whole_gradient(tmp_path, kind):
    """RLOO on a pair of texts, or on two runs of a text, against the sum over all pairs of trees."""
    consistency = 0.5 if kind == "classify" else 0.0
    changes = {"model.estimator": "rloo", "train.consistency": consistency}
    task = prepared(kind, tmp_path, **changes)
    task.model.double()
    copies = 2 if consistency else 1
    # few trees, and more than one
    lengths = task.train.lengths + task.null
    index = (lengths.sum(1) + 100 * (lengths.amin(1) < 3)).argmin(keepdim=True)
    shape = tuple(lengths[index][0].tolist())
    encoder, latent = task.model.encoder, task.model.encoder.tree
    weight = latent.scorer.head[0].weight

    texts = task.texts(task.train, shape, index.repeat(copies))
    batch = both(*texts) if len(texts) == 2 else texts[0]
    vertices = encoder.with_root(encoder.words(batch))
    trees = encoder.trees(vertices, batch.lengths)
    size = vertices.shape[-2]
    first, second = (
        F.pad(t, (0, size - t.shape[-1]) * 2)
        for t in map(latent.structure.enumerate, batch.lengths.tolist())
    )
    target = task.train.targets(index, shape[0] - task.null)
    total = torch.zeros((), dtype=torch.float64)
    for pair in (torch.stack((a, b)) for a in first for b in second):
        logits = task.model.logits(encoder.compose(vertices, pair), batch.lengths)
        loss = F.cross_entropy(logits, target.expand(len(logits)))
        if consistency:
            loss = loss + consistency * divergence(*logits[:, None], target)[0]
        total = total + trees.log_prob(pair).sum().exp() * loss
    (expected,) = torch.autograd.grad(total, weight, retain_graph=True)

    generator = seeded(2)
    losses = [task.loss(shape, index.repeat(200), generator) for _ in range(20)]
    gradients = torch.stack([torch.autograd.grad(loss, weight)[0] for loss in losses])
    error = gradients.std(0) / math.sqrt(len(gradients))
    assert expected.any()
    assert ((gradients.mean(0) - expected).abs() < 5 * error + 1e-9).all()
    assert sum(loss.item() for loss in losses) / 20 == pytest.approx(total.item(), rel=0.02)


def test_exact_needs_one_tree_for_each_loss(tmp_path):
    exact = {"model.estimator": "exact"}
    with pytest.raises(InputError, match=r"estimator is exact and kind pair, where two trees"):
        prepared("pair", tmp_path, **exact)
    with pytest.raises(InputError, match=r"exact and train.consistency not 0"):
        prepared("classify", tmp_path, **exact, train__consistency=1)


# ------------------------------------------------------------------ figures


@every_task
def test_figures_are_counts_that_can_be_added(tmp_path, kind):
    task = prepared(kind, tmp_path)
    counts = task.evaluate()
    parts = [task.evaluate(slice(i, i + 1)) for i in range(len(task.dev))]
    assert torch.equal(sum(parts), counts)
    assert task.model.training
    summary = task.summary(counts)
    assert summary["score"] == summary["las" if kind == "parser" else "accuracy"]
    assert summary["score"] == pytest.approx(100 * (counts[-2] / counts[-1]).item())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("decoder", [None, "gcn", "arcs", "masked"])
def test_nothing_waits_for_the_gpu(tmp_path, decoder):
    changes = UNLABELLED | {"unlabelled.decoder": decoder, "unlabelled.hidden": 0.2}
    changes |= {"unlabelled.agreement": 1, "unlabelled.entropy": 0.1}
    task = prepared("parser", tmp_path, device="cuda", **(changes if decoder else {}))
    shape, indices = task.batches(seed=0)[0]
    indices = indices.cuda()
    try:
        for mode in ("default", "error"):
            torch.cuda.set_sync_debug_mode(mode)
            task.loss(shape, indices, torch.Generator("cuda")).backward()
            task.evaluate()
    finally:
        torch.cuda.set_sync_debug_mode("default")
