"""The page for users of torch-struct, supar and pytorch-crf: both sides of every line.

Needs these three: `make bench` installs them and runs these tests first. Without them, our
side alone is run.
"""

import re
import warnings
from pathlib import Path

import pytest
import torch

from treelax import Binary, Chain, Labelled, NonProjective, Projective, Segments, convert
from treelax.errors import InputError

PAGE = Path(__file__).parent.parent / "docs" / "coming-from.md"
PEERS = {"torch-struct": "torch_struct", "supar": "supar.structs", "pytorch-crf": "torchcrf"}
SHARED = r"^import (torch|treelax as tx)$"  # blocks that all libraries start with
SAMPLES = 1000


@pytest.fixture(autouse=True)
def _old_calls():
    """Peers use what torch has deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def sections():
    """Library, title, blocks of code so far, and rows (theirs, ours) of each section with code."""
    found = []
    for part in re.split(r"^## From ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        library, _, text = part.partition("\n")
        if library not in PEERS:
            continue
        blocks = [] if not found else [b for b in found[0][2] if re.search(SHARED, b, re.MULTILINE)]
        for title, body in re.findall(
            r"^### (.*?)\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE
        ):
            blocks = blocks + re.findall(r"```python\n(.*?)```", body, re.DOTALL)
            rows = re.findall(r"^\| (?:`(.*?)`)? ?\| `(.*?)` \|", body, re.MULTILINE)
            found.append((library, title, blocks, rows))
    return found


def run(blocks, seed, with_peer):
    """What the blocks of code define, with our side alone where the peer is not installed."""
    torch.manual_seed(seed)
    names = {}
    for block in blocks:
        if with_peer or not re.search(
            r"^(import torch_struct|from supar|from torchcrf|theirs =)", block, re.MULTILINE
        ):
            exec(compile(block, PAGE.name, "exec"), names)
    return names


def same(library, trees, theirs, ours):
    """Whether two results are equal, each in its own layout; `trees` is our distribution."""
    if isinstance(ours, list):
        return sorted(theirs) == sorted(ours)
    if ours.shape[-len(trees.event_shape) :] == trees.event_shape:
        ours = getattr(convert, f"to_{library.replace('-', '_')}")(ours, trees.structure)
    if ours.shape[:1] == (SAMPLES,):
        theirs, ours = theirs.double().mean(0), ours.double().mean(0)
        return theirs.shape == ours.shape and bool(((theirs - ours).abs() < 0.1).all())
    # torch-struct adds 1e-5 to every weight of non-projective trees
    return theirs.shape == ours.shape and torch.allclose(
        theirs.double(), ours.double(), rtol=1e-4, atol=3e-4
    )


@pytest.mark.parametrize(
    ("library", "blocks", "rows"),
    [(library, blocks, rows) for library, _, blocks, rows in sections()],
    ids=[f"{library}, {title}" for library, title, _, _ in sections()],
)
def test_both_sides(library, blocks, rows):
    try:
        __import__(PEERS[library])
        there = True
    except ImportError:
        there = False
    names, others = (run(blocks, seed, there) for seed in (0, 1))
    structure, mode = names["structure"], names["ours"].mode
    heads = torch.nn.functional.pad(mode.argmax(-2)[:, 1:], (1, 0)) if mode.dim() == 3 else None
    known = torch.tensor([[2, -1, -1, -1, 0], [-1, 3, -1, -1, -1]])
    at_ours = names | {"other": others["ours"], "tree": mode, "heads": heads, "known": known}
    for theirs, ours in rows:
        value = eval(ours, at_ours)
        assert value is not None
        if there and theirs:
            tree = None
            if library == "torch-struct" and not isinstance(structure, Chain | Segments):
                tree = convert.to_torch_struct(mode, structure)
            at_theirs = names | {"other": others["theirs"], "tree": tree, "heads": heads}
            assert same(library, names["ours"], eval(theirs, at_theirs), value), theirs
    if not there:
        pytest.skip(f"{library} is not installed")


STRUCTURES = [Projective(), NonProjective(), Labelled(Projective()), Binary(), Labelled(Binary())]


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("library", ["torch_struct", "supar", "synjax"])
def test_there_and_back(structure, library):
    """Nothing that is read is lost, gradients come through, and types stay."""
    forth, back = (getattr(convert, f"{way}_{library}") for way in ("to", "from"))
    size = 4 + structure.rooted
    read = structure.part_mask(torch.tensor(4), size)
    scores = torch.randn(2, 3, size, size, 2)[(..., 0)[: 4 - structure.event_dim]]
    there = forth(scores, structure)
    kept = back(there, structure)
    assert torch.equal(torch.where(read, kept, 0), torch.where(read, scores, 0))
    assert torch.equal(forth(kept, structure), there)
    mode = structure(scores).mode.long().mul(3)
    assert torch.equal(back(forth(mode, structure), structure), mode)
    scores.requires_grad_()
    (grad,) = torch.autograd.grad(back(forth(scores, structure), structure).sum(), scores)
    assert torch.equal(torch.where(read, grad, 1), torch.ones_like(grad))
    with pytest.raises(InputError, match=r"has shape \(3, 2, 2\)|has shape \(2, 3\)"):
        back(torch.zeros((3, 2, 2) if structure.event_dim == 3 else (2, 3)), structure)


def test_one_root_and_labels_on_arcs():
    ts, supar = pytest.importorskip("torch_struct"), pytest.importorskip("supar.structs")
    labelled = torch.randn(2, 5, 5, 3, requires_grad=True)
    potentials = labelled[..., 0]
    for structure, peer, given, options in (
        (Labelled(Projective()), ts.DependencyCRF, labelled, {}),
        (Projective(single_root=True), ts.DependencyCRF, potentials, {"multiroot": False}),
        (NonProjective(single_root=True), ts.NonProjectiveDependencyCRF, potentials, {}),
    ):
        trees = structure(convert.from_torch_struct(given, structure))
        assert same("torch-struct", trees, peer(given, **options).marginals, trees.marginals)
    scores = torch.randn(2, 6, 6)
    for structure, peer in (
        (Projective(single_root=True), supar.DependencyCRF),
        (NonProjective(single_root=True), supar.MatrixTree),
    ):
        trees = structure(convert.from_supar(scores, structure))
        assert same("supar", trees, peer(scores.clone()).marginals, trees.marginals)


def test_lengths_of_their_segments():
    """What the page says of torch-struct's segments in a batch of different lengths."""
    ts = pytest.importorskip("torch_struct")
    potentials = torch.zeros(2, 5, 4, 1, 1)
    counts = [
        ts.SemiMarkovCRF(potentials[:rows].clone(), lengths[:rows]).partition.exp()
        for rows, lengths in ((1, torch.tensor([6])), (2, torch.tensor([6, 3])))
    ]
    expected = Segments(3).log_count(5, 1)
    assert counts[0].log().item() == pytest.approx(expected, abs=1e-4)
    assert counts[1][0] < counts[0][0]
