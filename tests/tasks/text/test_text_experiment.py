"""What the training loop gets of tasks on sentences, against slow computations; and they learn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from tiny_texts import (
    DATA,
    SNLI_SAMPLE,
    SST_TREES,
    class_data,
    pair_data,
    sst_data,
    tag_data,
    tiny,
    trained_with,
    written,
    written_trees,
)
from tolerances import VALUE_F32

from treelax.apps.data.text.vectors import NULL
from treelax.apps.tasks.sentences import experiment as module
from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.data import load_text
from treelax.apps.tasks.text.model import Sentences
from treelax.apps.tasks.text.task import TextExperiment
from treelax.errors import InputError
from treelax.nn.modes import evaluating
from treelax.trees import heads_to_tree

CPU = torch.device("cpu")
every_kind = pytest.mark.parametrize("kind", DATA)
TREES = ["none", "intra", "latent", "heads", "chain"]
with_and_without_null = pytest.mark.parametrize("null", [True, False])


def experiment(config):
    return TextExperiment(config, load_text(config.data), CPU)


def prepared(kind, folder, *, null=True, **model):
    """Without noise and dropout, so that a loss can be computed again."""
    options = {"noise": "none"} | model
    return experiment(tiny(kind, DATA[kind](folder, null=null), **options))


def one_by_one(task, data, example):
    """Logits and targets of a single example, gathered by hand."""
    texts = []
    for which in range(data.texts):
        begin, end = data.offsets[example * data.texts + which :][:2].tolist()
        ids = [NULL] * task.null + data.ids[begin:end].tolist()
        texts.append(Sentences(torch.tensor([ids]), torch.tensor([len(ids)])))
    assert data.labels is not None
    logits = task.model(*texts)[0]
    if data.tagged:
        return logits[task.null :], data.labels[begin:end]
    return logits[None], data.labels[example : example + 1]


# ------------------------------------------------------------------ model


def test_the_seed_decides_the_initial_weights(tmp_path):
    config = tiny("tag", tag_data(tmp_path))
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, same, other = (experiment(c) for c in (config, config, replace(config, seed=9)))
    assert torch.equal(torch.random.get_rng_state(), before)
    for name, value in one.model.state_dict().items():
        assert torch.equal(same.model.state_dict()[name], value)
    weight = "encoder.projection.0.weight"
    assert not torch.equal(other.model.state_dict()[weight], one.model.state_dict()[weight])


def test_random_vectors_are_all_learned_and_given_ones_are_not(tmp_path):
    data = class_data(tmp_path)
    matrix = load_text(data).vectors.matrix
    task = experiment(tiny("classify", data))
    assert torch.equal(task.model.encoder.embedding.learned, matrix[1:])
    vectors = written(tmp_path / "vectors.txt", "the 1 0", "cat 0 1")
    for learned in (0, 1, 101):
        config = tiny("classify", replace(data, vectors=vectors), learned_words=learned)
        rows = experiment(config).model.encoder.embedding.learned
        assert (0 if rows is None else len(rows)) == learned


# ------------------------------------------------------------------ batches


@every_kind
def test_batches_of_one_pass(tmp_path, kind):
    task = prepared(kind, tmp_path)
    size, lengths = task.config.train.batch_size, task.train.lengths + 1  # with NULL
    batches = task.batches(seed=1)
    assert len(batches) == task.updates == len(task.train) // size
    drawn = torch.cat([indices for _, indices in batches]).tolist()
    assert max(Counter(drawn).values()) == 1
    for shape, indices in batches:
        assert len(indices) == size
        assert shape == tuple(lengths[indices].amax(0).tolist())


def test_a_number_of_updates_takes_as_many_passes_as_it_needs(tmp_path):
    config = trained_with(tiny("pair", pair_data(tmp_path)), updates=7, batch_size=5)
    task = experiment(config)
    batches = task.batches(seed=0)
    assert len(batches) == task.updates == 7
    counts = Counter(torch.cat([indices for _, indices in batches]).tolist())
    assert set(counts) == set(range(10))
    assert set(counts.values()) <= {3, 4}


def test_on_a_gpu_there_are_few_shapes(tmp_path):
    task = prepared("pair", tmp_path)
    exact = task.batches(seed=0)
    task.device = torch.device("cuda")  # nothing is put there
    for (shape, indices), (rounded, same) in zip(exact, task.batches(seed=0), strict=True):
        assert torch.equal(indices, same)
        assert rounded == tuple(-(-n // module.PADDING) * module.PADDING for n in shape)


@pytest.mark.parametrize(("share", "mixed"), [(1.0, 4), (0.5, 2), (0.1, 0)])
def test_a_share_of_what_is_mixed_in(tmp_path, share, mixed):
    rows = ["neutral\tA dog .\tIt .", "entailment\tA dog .\tA dog .", "contradiction\tNo .\tHe ."]
    path = tmp_path / "multinli"
    for split in ("train", "dev_matched"):
        written(path / f"{split}.tsv", *rows)
    data = DataConfig(
        format="multinli", path=str(path), mix=str(SNLI_SAMPLE), mix_share=share, vector_size=4
    )
    config = trained_with(tiny("pair", data), batch_size=1)
    if not mixed:
        with pytest.raises(InputError, match=r"mix_share is 0.1, less than one of the 4"):
            experiment(config)
        return
    task = experiment(config)
    assert task.mixed == 4
    assert task.updates == 3 + mixed
    chosen = []
    for seed in range(6):
        drawn = torch.cat([indices for _, indices in task.batches(seed)]).tolist()
        assert len(set(drawn)) == len(drawn)
        assert {0, 1, 2} <= set(drawn)
        chosen.append(frozenset(i for i in drawn if i >= 3))
        assert len(chosen[-1]) == mixed
    assert len(set(chosen)) > 1 if mixed == 2 else len(set(chosen)) == 1


# ------------------------------------------------------------------ sentences


def test_null_moves_given_heads_by_one_and_hangs_off_the_root(tmp_path):
    data = sst_data(tmp_path, trees=written_trees(tmp_path), null=True)
    task = experiment(tiny("classify", data, trees="given"))
    batch = task.sentences(task.train, torch.tensor([1, 2, 0]), 0, 7)
    heads = [SST_TREES["train"][number][1] for number in (2, 3, 0)]
    moved = [[0, *(head + 1 if head else 0 for head in h)] for h in heads]
    assert batch.heads is not None
    assert batch.heads.tolist() == [h + [0] * (7 - len(h)) for h in moved]
    _, tree, _ = task.model.encoder(batch)
    padded = torch.tensor([h + [-1] * (7 - len(h)) for h in moved])
    assert torch.equal(tree, heads_to_tree(padded, batch.lengths))


# ------------------------------------------------------------------ loss and figures


@every_kind
@with_and_without_null
@pytest.mark.parametrize("trees", ["none", "latent"])
def test_the_loss_is_the_mean_over_single_examples(tmp_path, kind, null, trees):
    task = prepared(kind, tmp_path, null=null, trees=trees)
    for shape, indices in task.batches(seed=2):
        losses = []
        for example in indices.tolist():
            logits, targets = one_by_one(task, task.train, example)
            for row, target in zip(logits, targets.tolist(), strict=True):
                losses.append(-(row[target] - row.exp().sum().log()))
        expected = torch.stack(losses).mean().item()
        wider = tuple(n + 3 for n in shape)
        for lengths in (shape, wider):
            loss = task.loss(lengths, indices, torch.Generator())
            assert loss.shape == ()
            assert abs(loss.item() - expected) < VALUE_F32


@every_kind
@with_and_without_null
@pytest.mark.parametrize("soft", [False, True])
def test_figures_are_those_of_single_examples(tmp_path, kind, null, soft, monkeypatch):
    monkeypatch.setattr(module, "MOST_SENTENCES", 2)
    task = prepared(kind, tmp_path, null=null)
    for parameter in task.model.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=torch.Generator())
    counts = task.count(task.dev_data, task.dev, soft=soft)
    if not soft:
        assert torch.equal(task.evaluate(), counts)
    task.model.train(soft)  # without noise, soft trees are those of training
    right = total = 0
    for example in range(len(task.dev_data)):
        logits, targets = one_by_one(task, task.dev_data, example)
        right += int((logits.argmax(-1) == targets).sum())
        total += len(targets)
    assert counts.tolist() == [right, total]
    assert task.summary(counts) == {"score": 100 * right / total, "accuracy": 100 * right / total}


def test_a_long_text_makes_no_others_long(tmp_path):
    task = prepared("classify", tmp_path)
    words = torch.tensor([[5]] * 300 + [[3_000]])
    shapes = [(shape, len(indices)) for shape, indices in task.evaluation_batches(words)]
    assert shapes == [((5,), 300), ((3_000,), 1)]


@every_kind
def test_the_last_epochs_have_the_trees_that_are_used_afterwards(tmp_path, kind):
    config = trained_with(
        tiny(kind, DATA[kind](tmp_path), noise="gumbel"), epochs=5, discrete_epochs=2
    )
    task = experiment(config)
    assert [task.begin(epoch) for epoch in range(1, 6)] == [False] * 3 + [True] * 2
    shape, indices = task.batches(seed=0)[0]
    losses = [task.loss(shape, indices, torch.Generator().manual_seed(s)).item() for s in (1, 2)]
    assert losses[0] == losses[1]
    with evaluating(task.model):
        assert task.loss(shape, indices, torch.Generator()).item() == losses[0]
    # the parser still learns
    task.loss(shape, indices, torch.Generator()).backward()
    assert task.model.encoder.tree is not None
    for name, parameter in task.model.encoder.tree.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    # a run that goes on from an earlier epoch has noise again
    assert not task.begin(3)
    losses = [task.loss(shape, indices, torch.Generator().manual_seed(s)).item() for s in (1, 2)]
    assert losses[0] != losses[1]


def test_half_precision_is_that_of_the_layers(tmp_path):
    config = tiny("pair", pair_data(tmp_path), noise="none")
    plain, half = experiment(config), experiment(trained_with(config, precision="bf16"))
    shape, indices = plain.batches(seed=0)[0]
    losses = [task.loss(shape, indices, torch.Generator()) for task in (plain, half)]
    assert [loss.dtype for loss in losses] == [torch.float32] * 2
    assert losses[0].item() != losses[1].item()
    assert losses[0].item() == pytest.approx(losses[1].item(), abs=0.02)
    losses[1].backward()
    for name, parameter in half.model.named_parameters():
        assert parameter.dtype == torch.float32, name
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


# ------------------------------------------------------------------ learning


def losses_of(task, epochs=40):
    optimizer = torch.optim.Adam(task.groups(), lr=task.config.train.learning_rate)
    generator = torch.Generator().manual_seed(0)
    means = []
    for epoch in range(epochs):
        losses = []
        for shape, indices in task.batches(epoch):
            loss = task.loss(shape, indices, generator)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(sum(losses) / len(losses))
    return means


@pytest.mark.parametrize(
    ("kind", "trees"),
    [("pair", "latent"), ("tag", "latent"), *(("classify", t) for t in TREES)],
)
def test_training_lowers_the_loss(tmp_path, kind, trees):
    data = DATA[kind](tmp_path)
    losses = losses_of(experiment(tiny(kind, data, trees=trees)))
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("kind", "make", "message"),
    [
        ("pair", class_data, "has 1 text and a class per example; expected 2 texts and a class"),
        ("classify", tag_data, r"train\.txt has 1 text and tags per example; expected 1 text"),
        ("tag", class_data, "kind is tag and .*; expected 1 text and tags"),
    ],
)
def test_data_of_another_kind(tmp_path, kind, make, message):
    with pytest.raises(InputError, match=message):
        experiment(tiny(kind, make(tmp_path)))
