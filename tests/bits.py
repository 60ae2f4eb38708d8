"""Whether two builds give the same bits: every operation, structure, backend and type, as hashes.

    python tests/bits.py write FILE      on one commit
    python tests/bits.py compare FILE    on another one, on the same machine with the same torch

`compare` lists what differs and exits with 1 if anything does. Only names are used that later commits
keep: the methods of structures with ``backend=``.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import itertools
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import treelax as tx

STRUCTURES = {
    "projective": tx.Projective(),
    "projective-root": tx.Projective(single_root=True),
    "nonprojective": tx.NonProjective(),
    "nonprojective-root": tx.NonProjective(single_root=True),
    "binary": tx.Binary(),
    "heads": tx.Heads(),
    "labelled-projective": tx.Labelled(tx.Projective()),
    "labelled-projective-root": tx.Labelled(tx.Projective(single_root=True)),
    "labelled-nonprojective": tx.Labelled(tx.NonProjective()),
    "labelled-nonprojective-root": tx.Labelled(tx.NonProjective(single_root=True)),
    "labelled-binary": tx.Labelled(tx.Binary()),
    "labelled-heads": tx.Labelled(tx.Heads()),
}
DEVICES = {
    "reference": "cpu",
    "diagonal": "cpu",
    "native": "cpu",
    "triton": "cuda",
    "cuda": "cuda",
}
#: Operations by many best structures, which are slow without a kernel.
SEARCHES = ("top k", "max-marginals", "sparsemap")
DTYPES = (torch.float32, torch.float64)
LABELS = 2
FORBIDDEN = float("-inf")


def cases(structure: Any) -> Iterator[tuple[str, Tensor, Tensor | None]]:
    """Name, scores in float64 and lengths of every case."""
    generator = torch.Generator().manual_seed(0)

    def scores(*batch: int, words: int) -> Tensor:
        size = words + structure.rooted
        labels = (LABELS,) if structure.event_dim == 3 else ()
        return torch.randn(*batch, size, size, *labels, generator=generator, dtype=torch.float64)

    ragged = torch.tensor([5, 3, 0, 1, 4])
    yield "one", scores(words=6), None
    yield "no words", scores(2, words=0), None
    yield "ragged", scores(5, words=5), ragged
    padded = scores(5, words=5)
    mask = structure.part_mask(ragged, padded.shape[1])
    yield "NaN in the padding", padded.masked_fill(~mask, float("nan")), ragged
    yield "forbidden", forbid(structure, scores(5, words=5), generator), ragged
    yield "large", 1e4 * scores(2, words=5), torch.tensor([5, 3])
    yield "huge", 1e29 * scores(2, words=5), torch.tensor([5, 3])
    yield "300 sentences", scores(300, words=4), torch.arange(300) % 5


def forbid(structure: Any, scores: Tensor, generator: torch.Generator) -> Tensor:
    """A third of the parts forbidden, but none of a chain, or of the tree that branches to the left."""
    size = scores.shape[1]
    allowed = torch.rand(scores.shape, generator=generator, dtype=torch.float64) > 1 / 3
    place = torch.arange(size)
    if structure.rooted:
        spared = place[:, None] + 1 == place
    else:
        spared = (place[:, None] == place) | (place[:, None] == 0)
    if structure.event_dim == 3:
        spared = spared[..., None]
    return scores.masked_fill(~(allowed | spared), FORBIDDEN)


def operations(structure: Any) -> dict[str, Callable[..., Any]]:
    """Tensors of scores, lengths and options: the first ones are differentiated."""

    def sparse(scores: Tensor, lengths: Tensor | None, **options: Any) -> list[Tensor]:
        result = structure.sparsemap(scores, lengths, **options)
        return [result.tree, result.gap, *result.support]

    def sample(scores: Tensor, lengths: Tensor | None, **options: Any) -> Tensor:
        generator = torch.Generator(scores.device).manual_seed(1)
        return structure.sample(scores, lengths, sample_shape=(3,), generator=generator, **options)

    def soft(relaxation: str) -> Callable[..., Tensor]:
        return lambda scores, lengths, **options: structure.relaxed(
            scores, lengths, relaxation=relaxation, temperature=0.7, **options
        )

    return {
        **{f"soft {relaxation}": soft(relaxation) for relaxation in structure.relaxations},
        "best": structure.argmax,
        "log-partition": structure.log_partition,
        "marginals": structure.marginals,
        "sample": sample,
        "top k": lambda scores, lengths, **options: structure.top_k(scores, lengths, 3, **options),
        "max-marginals": structure.max_marginals,
        "sparsemap": sparse,
    }


def affordable(backend: str, structure: str, case: str, operation: str) -> bool:
    """Whether to compute it: slow backends search one sentence, and the reference has fewer cases."""
    many, labelled = case == "300 sentences", structure.startswith("labelled")
    if operation in SEARCHES and backend in ("reference", "diagonal"):
        return case == "one" and not labelled
    if operation in SEARCHES and many:
        return not labelled
    return not (backend == "reference" and (many or (labelled and case != "ragged")))


def digest(tensors: list[Tensor]) -> str:
    """SHA-256 of shapes, types and bytes."""
    result = hashlib.sha256()
    for tensor in tensors:
        tensor = tensor.detach().cpu().contiguous()
        result.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        result.update(ctypes.string_at(tensor.data_ptr(), tensor.nbytes) if tensor.numel() else b"")
    return result.hexdigest()


def computed(
    operation: Callable[..., Any], scores: Tensor, lengths: Tensor | None, backend: str
) -> dict[str, str]:
    """Hashes of the values and of the gradient, or of the error."""
    scores = scores.clone().requires_grad_()
    try:
        values = operation(scores, lengths, backend=backend)
    except tx.TreelaxError as error:
        return {"value": f"{type(error).__name__}: {error}"}
    values = [values] if isinstance(values, Tensor) else list(values)
    hashes = {"value": digest(values)}
    graded = [value for value in values if value.requires_grad]
    if graded:
        # weights of both signs; without sin, whose bits depend on the library of mathematics
        weights = [torch.arange(v.numel(), device=v.device).remainder(7).sub(3) for v in graded]
        grads = [w.reshape(v.shape).to(v.dtype) for w, v in zip(weights, graded, strict=True)]
        hashes["gradient"] = digest(list(torch.autograd.grad(graded, scores, grads)))
    return hashes


def available(backend: str) -> bool:
    """Whether a backend runs on this machine."""
    if DEVICES[backend] == "cuda" and not torch.cuda.is_available():
        return False
    try:
        tx.Projective().argmax(torch.zeros(2, 2, device=DEVICES[backend]), backend=backend)
    except tx.TreelaxError:
        return False
    return True


def backends() -> list[str]:
    """Those that run here."""
    return [backend for backend in DEVICES if available(backend)]


def hashes(job: tuple[str, str]) -> dict[str, str]:
    """The hashes of a backend and a structure, by operation, type and case."""
    backend, name = job
    structure, device = STRUCTURES[name], DEVICES[backend]
    result = {}
    for case, scores, lengths in cases(structure):
        lengths = None if lengths is None else lengths.to(device)
        for dtype in DTYPES:
            given = scores.to(device, dtype)
            for label, operation in operations(structure).items():
                if affordable(backend, name, case, label):
                    for what, value in computed(operation, given, lengths, backend).items():
                        kind = str(dtype).removeprefix("torch.")
                        result["/".join((label, what, name, backend, kind, case))] = value
    return result


def all_hashes() -> dict[str, str]:
    """Those of every backend and structure, by as many processes as half the cores, at least two."""
    jobs = list(itertools.product(backends(), STRUCTURES))
    with multiprocessing.get_context("spawn").Pool(max(2, (os.cpu_count() or 2) // 2)) as pool:
        parts = pool.map(hashes, jobs, chunksize=1)
    return {key: value for part in parts for key, value in part.items()}


def commit() -> str:
    """The commit, with a plus sign if files differ from it."""

    def git(*arguments: str) -> str:
        folder = Path(__file__).parent
        return subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
        ).stdout.strip()

    return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain") else "")


def machine() -> dict[str, str]:
    """What the bits of a build may depend on."""
    return {
        "platform": platform.platform(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "",
        "torch": torch.__version__,
        "backends": " ".join(backends()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    start = time.monotonic()
    now = {"commit": commit(), "machine": machine(), "hashes": all_hashes()}
    errors = sum(": " in value for value in now["hashes"].values())
    print(f"{len(now['hashes'])} hashes, {errors} errors, {time.monotonic() - start:.0f} s")
    if arguments.action == "write":
        arguments.file.write_text(json.dumps(now, indent=0, sort_keys=True) + "\n")
        return 0
    before = json.loads(arguments.file.read_text())
    for what in ("commit", "machine"):
        print(f"{what}: {before[what]} in {arguments.file}, now {now[what]}")
    old, new = before["hashes"], now["hashes"]
    different = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    for key in different:
        reason = "differs" if key in old and key in new else "only now" if key in new else "missing"
        print(f"{reason}: {key}")
    print(f"{len(different)} of {len(old.keys() | new.keys())} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
