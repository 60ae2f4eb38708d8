"""The contract of torch.library, second derivatives, forward mode, hooks; numbers are in the matrix."""

import pytest
import torch
from matrix import (
    ALGORITHMS,
    LENGTHS,
    OPERATIONS,
    SMOOTH,
    draw,
    every_algorithm,
    every_structure,
)
from torch import Tensor
from torch.library import opcheck
from torch.utils._python_dispatch import TorchDispatchMode

import treelax as tx
from treelax.errors import ForwardModeError, InputError, SecondDerivativeError

BACKENDS = ["reference", "diagonal", "native"]
every_backend = pytest.mark.parametrize("backend", BACKENDS)


class Recorded(TorchDispatchMode):
    """The calls of treelax's own operations of torch, one of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = {}

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if operation.namespace == "treelax":
            self.calls[operation] = args
        return operation(*args, **(kwargs or {}))


def recorded(structure, backend):
    """The calls that a structure makes, with their arguments."""
    scores = draw(structure, 3).float().requires_grad_()
    with Recorded() as recorder:
        for operation in OPERATIONS.values():
            result = operation(structure, scores, LENGTHS, backend=backend)
            if result.requires_grad:
                torch.autograd.grad(result.sum(), scores)
        tree = structure.sparsemap(scores, LENGTHS, backend=backend).tree
        torch.autograd.grad(tree.sum(), scores)
        structure.max_marginals(scores, LENGTHS, backend=backend)
    return recorder.calls


def leaf(argument, wanted):
    """An argument as a caller has it."""
    if not isinstance(argument, Tensor) or not argument.is_floating_point():
        return argument
    return argument.detach().clone().requires_grad_(wanted)


def test_opcheck_of_every_operation():
    met = set()
    for structure in (*ALGORITHMS[::2], tx.Heads(), tx.Chain(), tx.Labelled(tx.Projective())):
        for operation, args in recorded(structure, "native").items():
            name = operation.name().partition(".")[0]
            if structure == tx.Chain() and not name.endswith("max_marginals"):
                continue  # what the kernel keeps of paths has gaps, which hold anything
            met.add(name)
            wants = "backward" not in name and not name.endswith(("sparsemap", "_by_argmax"))
            opcheck(operation, tuple(leaf(x, wants and place == 0) for place, x in enumerate(args)))
            if name.endswith(("best_tree", "sample_tree", "max_marginals")):
                opcheck(operation, tuple(leaf(x, False) for x in args))
    every = {name for name in torch._C._dispatch_get_all_op_names() if name.startswith("treelax::")}
    assert met == every


@every_algorithm
def test_shapes_of_plain_pytorch(structure):
    """What it keeps for its backward pass has another shape."""
    for operation, args in recorded(structure, "diagonal").items():
        plain = tuple(leaf(x, False) for x in args)
        opcheck(operation, plain, test_utils=("test_schema", "test_faketensor"))


# ── only first derivatives ───────────────────────────────────────────────────────────────────────


@every_algorithm
@every_backend
def test_second_derivatives_are_an_error(structure, backend):
    """Also where the value is linear: only the scores tie the graph together."""
    scores = draw(structure, 2, n=3).requires_grad_()
    values = [OPERATIONS[name](structure, scores, None, backend=backend) for name in SMOOTH]
    for value in (*values, structure.sparsemap(scores, backend=backend).tree):
        for scalar in (value.square().sum(), value.flatten()[1]):
            (grad,) = torch.autograd.grad(scalar, scores, create_graph=True)
            with pytest.raises(SecondDerivativeError, match="second derivative"):
                grad.square().sum().backward()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, in jvp
@pytest.mark.parametrize("structure", [*ALGORITHMS, tx.Heads()], ids=str)
@pytest.mark.parametrize("operation", ["relaxed", "log_partition"])
def test_forward_mode_is_an_error(structure, operation):
    """Never a zero tangent."""
    if isinstance(structure, tx.Heads) and operation == "log_partition":
        return  # torch's own operations
    scores = draw(structure, 3)

    def compute(x):
        return OPERATIONS[operation](structure, x, None)

    with pytest.raises(ForwardModeError, match="forward mode"):
        torch.func.jvp(compute, (scores,), (scores,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(scores, scores)
        with pytest.raises(ForwardModeError, match="forward mode"):
            compute(dual)
        compute(scores)  # without a tangent there is nothing to lose


@every_structure
def test_what_has_a_gradient(structure):
    """It has it as often as it is asked for."""
    scores = draw(structure, 3).requires_grad_()
    for name, operation in OPERATIONS.items():
        result = operation(structure, scores, LENGTHS)
        assert result.requires_grad == (name in SMOOTH)
        if name in SMOOTH:
            loss = result.square().sum()
            grads = [torch.autograd.grad(loss, scores, retain_graph=True)[0] for _ in range(2)]
            assert torch.equal(*grads)
        with torch.no_grad():
            assert not operation(structure, scores, None).requires_grad


# ── graphs ───────────────────────────────────────────────────────────────────────────────────────


def strided(tensor):
    return torch.stack((tensor, tensor), -1)[..., 0]


def unaligned(tensor):
    room = torch.empty(tensor.numel() + 1, dtype=tensor.dtype)[1:].view(tensor.shape)
    return room.copy_(tensor)


@every_algorithm
@every_backend
@pytest.mark.parametrize("operation", ["relaxed", "log_partition"])
def test_hooks_on_saved_tensors(structure, backend, operation):
    """A hook may bring back another layout, as when a tensor was kept elsewhere, and nothing else."""
    scores = draw(structure, 3).float().requires_grad_()

    def gradient(unpack):
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
            result = OPERATIONS[operation](structure, scores, None, backend=backend)
        return torch.autograd.grad(result.sum(), scores)[0]

    expected = gradient(lambda tensor: tensor)
    for unpack in (strided, unaligned):
        assert torch.equal(gradient(unpack), expected)
    for change in (Tensor.half, lambda tensor: tensor[..., :-1], Tensor.to_sparse):
        with pytest.raises(InputError, match="saved for the backward pass"):
            gradient(change)
