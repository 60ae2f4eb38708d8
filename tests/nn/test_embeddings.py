"""Word vectors: which rows learn, which stay, and of what type they come out."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from treelax.errors import InputError
from treelax.nn.embeddings import WordEmbedding


def table(rows: int = 6, size: int = 3, dtype: torch.dtype = torch.float32) -> Tensor:
    values = torch.randn(rows, size, generator=torch.Generator().manual_seed(3)).to(dtype)
    values[0] = 0
    return values


IDS = torch.tensor([[5, 1, 2], [3, 1, 0]])


@given(st.integers(0, 5), st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_all_rows_are_looked_up_and_only_learned_ones_learn(learned, words):
    embedding = WordEmbedding(table(), learned=learned)
    ids = torch.tensor(words)
    vectors = embedding(ids)
    assert torch.equal(vectors, table()[ids])
    assert vectors.requires_grad == (learned > 0)
    if learned:
        vectors.sum().backward()
        counts = torch.tensor([words.count(row) for row in range(1, learned + 1)])
        assert torch.equal(embedding.learned.grad, counts[:, None].expand(-1, 3).float())


def test_a_step_moves_learned_rows_alone():
    embedding = WordEmbedding(table(), learned=2)
    before = embedding(torch.arange(6)).detach()
    embedding(torch.arange(6)).square().sum().backward()
    torch.optim.SGD(embedding.parameters(), lr=0.25).step()
    after = embedding(torch.arange(6)).detach()
    assert torch.equal(after[1:3], before[1:3] / 2)
    assert torch.equal(after[[0, 3, 4, 5]], before[[0, 3, 4, 5]])
    assert torch.equal(embedding.table, table())
    assert list(embedding.state_dict()) == ["learned"]  # the table belongs to the vocabulary
    assert torch.equal(torch.vmap(embedding)(IDS), embedding(IDS))


@pytest.mark.parametrize("learned", [0, 2])
def test_vectors_are_of_the_modules_type_whatever_the_table_has(learned):
    embedding = WordEmbedding(table(dtype=torch.float16), learned=learned)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(embedding(IDS), table(dtype=torch.float16).float()[IDS])
    for moved in (embedding.double(), embedding.bfloat16(), embedding.float()):
        assert moved(IDS.int()).dtype == moved.like.dtype


@pytest.mark.parametrize(
    ("rows", "learned", "message"),
    [
        (table()[1], 0, r"table has shape \(3,\)"),
        (table(), 6, "learned is 6"),
        (table().long(), 0, "dtype torch.int64"),
        (table()[1:], 0, "row 0 that is not 0"),
    ],
)
def test_tables_that_will_not_do(rows, learned, message):
    with pytest.raises(InputError, match=message):
        WordEmbedding(rows, learned=learned)
    with pytest.raises(InputError, match=r"ids has dtype torch\.float32"):
        WordEmbedding(table())(torch.zeros(2))


def test_appended_rows_are_not_learned():
    embedding = WordEmbedding(table(dtype=torch.float16), learned=2)
    before = embedding(torch.arange(6))
    embedding.append(torch.ones(2, 3, dtype=torch.float64))
    assert torch.equal(embedding(torch.arange(6)), before)
    assert torch.equal(embedding(torch.tensor([6, 7])), torch.ones(2, 3))
    assert embedding.table.dtype == torch.float16
    assert [tuple(each.shape) for each in embedding.parameters()] == [(2, 3)]
    with pytest.raises(InputError, match=r"rows has shape \(2, 4\); expected \(words, 3\)"):
        embedding.append(torch.ones(2, 4))
