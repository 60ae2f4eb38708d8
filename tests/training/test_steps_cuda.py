"""Optimisation steps on a GPU: captured once, replayed, the same as on the CPU.

Skipped without a CUDA device. Where there is one but no pytest, the file runs as a script:
``PYTHONPATH=src python tests/training/test_steps_cuda.py``.
"""

import torch
from torch import nn

from treelax.apps.training.steps import Stepper

try:
    import pytest
except ModuleNotFoundError:
    pass
else:
    pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def new_stepper(device, noise=0.1, average=0.0):
    """Steps towards the sum of four numbers; a shape cuts the batch."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
    points = torch.linspace(-1, 1, 80, device=device).reshape(20, 4)

    def loss(shape, batch, generator):
        inputs = points[batch][:shape]
        error = model(inputs)[:, 0] - inputs.sum(-1)
        if noise:
            error = error + noise * torch.empty_like(error).normal_(generator=generator)
        return error.square().mean()

    unused = nn.Parameter(torch.ones(3, device=device))  # which has no gradient
    parameters = [*model.parameters(), unused]
    groups = [{"params": parameters[:2], "rate": 1.0}, {"params": parameters[2:], "rate": 0.5}]
    device = torch.device(device)
    generator = torch.Generator(device).manual_seed(0)
    return Stepper(model, loss, groups, generator, 0.5, device, average=average)


def batch(number):
    return torch.randint(20, (8,), generator=torch.Generator().manual_seed(number))


def weights(stepper):
    return [value.clone() for value in stepper.model.state_dict().values()]


def averages(stepper):
    """What Adam keeps of each parameter, and the running mean."""
    return [value.clone() for value in stepper.state().values()]


def test_preparing_changes_nothing():
    stepper = new_stepper("cuda", average=0.9)
    stepper.set_rate(0.1)
    fresh = weights(stepper)
    stepper.prepare({8: batch(0)})
    assert all(map(torch.equal, weights(stepper), fresh))
    # Adam's state is there now, but as at the start
    assert averages(stepper)
    assert not any(value.any() for value in averages(stepper))

    stepper.step(8, batch(1))
    torch.cuda.synchronize()
    trained, kept, total = weights(stepper), averages(stepper), float(stepper.total)
    assert not any(map(torch.equal, trained, fresh))
    stepper.prepare({8: batch(0), 5: batch(2)})
    assert sorted(stepper.graphs) == [5, 8]
    assert all(map(torch.equal, weights(stepper), trained))
    assert all(map(torch.equal, averages(stepper), kept))
    assert float(stepper.total) == total


def test_replayed_steps_are_those_of_the_cpu():
    """Without noise, for the generators of the two devices draw other numbers."""
    both = []
    for device in ("cuda", "cpu"):
        stepper = new_stepper(device, noise=0)
        for epoch in range(3):
            stepper.prepare({8 - epoch: batch(0), 6: batch(1)})
            stepper.set_rate(0.1 / (epoch + 1))
            for number in range(10):
                stepper.step((8 - epoch) if number % 2 else 6, batch(number))
        both.append((stepper.mean_loss(30), weights(stepper)))  # the first waits for all steps
    (loss, captured), (expected, plain) = both
    assert abs(loss - expected) < 1e-3 * expected
    # far below the smallest rate, so not a single step can be missing
    for received, wanted in zip(captured, plain, strict=True):
        assert torch.allclose(received.cpu(), wanted, rtol=0, atol=5e-3)


def test_noise_comes_from_the_seed():
    def run(seed):
        stepper = new_stepper("cuda")
        stepper.set_rate(0.1)
        stepper.prepare({8: batch(0)})
        stepper.generator.manual_seed(seed)
        for number in range(5):
            stepper.step(8, batch(number))
        assert stepper.mean_loss(5) > 0
        return weights(stepper)

    one, same, other = run(1), run(1), run(2)
    assert all(map(torch.equal, one, same))
    assert not any(map(torch.equal, one, other))


def test_a_new_phase_is_captured_anew():
    stepper = new_stepper("cuda", noise=0)
    plain, factor = stepper.loss, [1.0]
    stepper.loss = lambda *arguments: factor[0] * plain(*arguments)
    losses = []
    for phase in (1.0, 1.0, 3.0):
        factor[0] = phase
        stepper.begin(phase)
        stepper.prepare({8: batch(0)})
        stepper.step(8, batch(0))  # at a rate of 0
        losses.append(stepper.mean_loss(1))
    assert losses[1] == losses[0]
    assert abs(losses[2] - 3 * losses[0]) < 1e-5 * losses[0]


def test_captured_steps_go_on_from_their_state():
    def steps(stepper, numbers):
        stepper.prepare({8: batch(0)})
        stepper.set_rate(0.1)
        stepper.generator.manual_seed(1)
        for number in numbers:
            stepper.step(8, batch(number))
        torch.cuda.synchronize()
        return stepper

    first = steps(new_stepper("cuda", average=0.9), range(4))
    saved = {name: value.cpu() for name, value in first.state().items()}
    trained = {name: value.cpu() for name, value in first.model.state_dict().items()}
    steps(first, range(4, 8))
    resumed = new_stepper("cuda", average=0.9)
    resumed.model.load_state_dict(trained)
    resumed.restore(saved)
    steps(resumed, range(4, 8))
    assert all(map(torch.equal, weights(resumed), weights(first)))
    assert all(map(torch.equal, averages(resumed), averages(first)))


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name, flush=True)
