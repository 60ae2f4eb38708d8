"""A model whose words choose their heads alone: the page shows these choices, not those of trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from fastapi.testclient import TestClient
from torch import Tensor

from treelax.data.listops import encode_listops, parse_expression
from treelax.data.text.vectors import random_vectors
from treelax.demo.app import create_app
from treelax.demo.messages import SourceName
from treelax.demo.models import ListOpsSource, SentenceSource
from treelax.demo.sources import Source
from treelax.noise import perturbation
from treelax.ops import select_heads
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.listops.model import ListOpsTagger
from treelax.tasks.listops.model import ModelConfig as ListOpsModelConfig
from treelax.tasks.text.model import ModelConfig
from treelax.training.models import TrainedModel
from treelax.tasks.text.pretrained import SentenceModel, SentenceSettings
from treelax.trees import is_tree, tree_to_heads

if TYPE_CHECKING:
    from demo_browser import Visitor

EXPRESSION = "[MAX 2 9 [MIN 4 7 ] 0 ]"
WORDS = "the old cat watched a small bird"
ROUNDED = 0.51e-6  # replies have six decimals
FORBIDDEN = float("-inf")


@pytest.fixture(scope="module")
def tagger() -> ListOpsTagger:
    torch.manual_seed(0)
    model = ListOpsModelConfig(trees="heads", embedding_size=8, encoder_size=8, scorer_size=8)
    return ListOpsTagger(model).eval()


@pytest.fixture(scope="module")
def sentences() -> SentenceModel:
    torch.manual_seed(1)
    settings = SentenceSettings(model=ModelConfig(trees="heads", encoder_size=8, scorer_size=8))
    return SentenceModel(settings, random_vectors(WORDS.split(), 8), ["no", "yes"]).eval()


@pytest.fixture(scope="module")
def sources(tagger: ListOpsTagger, sentences: SentenceModel) -> Mapping[SourceName, Source]:
    trained = TrainedModel(tagger, ListOpsConfig(model=tagger.config), {}, Path("tiny"))
    return {"listops": ListOpsSource(trained, "tiny"), "run": SentenceSource(sentences, "tiny")}


@pytest.fixture(scope="module")
def client(sources: Mapping[SourceName, Source]) -> TestClient:
    return TestClient(create_app(sources))


def ask(client: TestClient, **request: Any) -> dict[str, Any]:
    reply = client.post("/api/trees", json=request)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def matrix(rows: list[list[float | None]]) -> Tensor:
    numbers = [[FORBIDDEN if value is None else value for value in row] for row in rows]
    return torch.tensor(numbers, dtype=torch.float64)


def test_best_heads_are_those_of_the_model(
    client: TestClient, tagger: ListOpsTagger, sentences: SentenceModel
) -> None:
    """Which form a cycle here, as no tree does."""
    expected = tree_to_heads(tagger.tree(encode_listops([parse_expression(EXPRESSION)])))[0]
    assert not is_tree(expected)
    assert ask(client, text=EXPRESSION)["best"] == expected.tolist()
    [said] = sentences.predict([WORDS])
    assert not is_tree(torch.tensor(said.heads[0]))
    reply = ask(client, source="run", text=WORDS)
    assert reply["best"] == list(said.heads[0])
    assert reply["answer"]["text"] == f"{said.label} ({100 * said.probability:.0f} %)"


@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
def test_all_numbers_of_a_reply(client: TestClient, relaxation: str) -> None:
    """A column of scores is a distribution of its own."""
    reply = ask(
        client, source="run", text=WORDS, noise_seed=5, noise_scale=1.5, relaxation=relaxation,
        temperature=0.7, forbidden=[{"head": 1, "word": 2}], samples=500, sample_seed=3,
    )  # fmt: skip
    scores = matrix(reply["scores"])
    noise = perturbation("gumbel", scores, generator=torch.Generator().manual_seed(5))
    perturbed = scores + 1.5 * noise
    assert reply["best_perturbed"] == tree_to_heads(select_heads(perturbed, hard=True)).tolist()
    shares = scores[:, 1:].softmax(0)
    expected = {
        "soft": (perturbed[:, 1:] / 0.7).softmax(0),
        "marginals": shares,
        "log_partition": scores[:, 1:].logsumexp(0).sum(),
        "entropy": -torch.xlogy(shares, shares).sum(),
        "best_log_probability": shares.amax(0).log().sum(),
    }
    for name, numbers in expected.items():
        own = torch.tensor(reply[name], dtype=torch.float64)
        own = own[:, 1:] if own.dim() else own
        # scores are rounded too
        torch.testing.assert_close(own, numbers, rtol=0, atol=20 * ROUNDED, msg=name)
    drawn = torch.tensor(reply["samples"]["frequencies"], dtype=torch.float64)[:, 1:]
    error = (shares * (1 - shares) / 500).sqrt()
    assert ((drawn - shares).abs() <= 5 * error).all()
    assert drawn[1, 1] == 0
    assert [drawn[head, at] > 0 for at, head in enumerate(reply["samples"]["last"])] == [True] * 7


def test_the_first_samples_are_the_same_whatever_comes_after_them(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = [ask(client, text=EXPRESSION, samples=n)["samples"]["last"] for n in (1, 2, 7)]
    assert drawn[0] != drawn[2]
    monkeypatch.setattr("treelax.demo.answers.SAMPLED_AT_ONCE", 1)
    assert [ask(client, text=EXPRESSION, samples=n)["samples"]["last"] for n in (1, 2, 7)] == drawn


def test_pins_may_cross_and_close_a_cycle(client: TestClient) -> None:
    arcs = [(3, 1), (4, 2), (1, 3)]
    pinned = [{"head": head, "word": word} for head, word in arcs]
    reply = ask(client, source="run", text=WORDS, pinned=pinned, samples=1)
    for heads in (reply["best"], reply["best_perturbed"], reply["samples"]["last"]):
        assert heads[:3] == [3, 4, 1]


def test_what_heads_cannot_have_is_refused(client: TestClient) -> None:
    reply = client.post("/api/trees", json={"text": EXPRESSION, "single_root": True})
    assert (reply.status_code, reply.json()["detail"]) == (
        409,
        'single_root is True with structure "heads"; expected False: words that choose alone cannot '
        'agree on one root. Use "projective".',
    )
    forbidden = [{"head": head, "word": 1} for head in (0, 2)]
    reply = client.post("/api/trees", json={"text": "2 9", "forbidden": forbidden})
    assert reply.json()["detail"] == (
        "pinned and forbidden arcs leave a word without a head; expected at least one: free an arc"
    )


def test_the_page_of_such_a_model(visitor: Visitor) -> None:
    """With a link of another model, which asks for a single root."""
    visit = visitor().open(source="run", text=WORDS, roots="single", samples="1")
    reply = visit.shows_its_state(roots="several")
    assert not is_tree(torch.tensor(reply.best))
    assert visit.page.locator("#heads-facts").is_visible()
    assert not visit.page.locator("#relaxations, #roots").first.is_visible()
    assert "The best heads have probability" in visit.page.locator("#best-facts").inner_text()
