"""The machine and the versions a figure belongs to; no host name, no user, no path."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Machine:
    """Where and with what a run was made."""

    machine: str
    python: str
    torch: str
    commit: str
    dirty: str  # "yes", "no" or "unknown"

    def __str__(self) -> str:
        changed = ", with uncommitted changes" if self.dirty == "yes" else ""
        versions = f"Python {self.python}, torch {self.torch}"
        return f"{self.machine}; {versions}; commit {self.commit}{changed}"


def first(path: str, key: str) -> str | None:
    """The value of the first ``key: value`` line of a file under /proc."""
    with suppress(OSError):
        for line in Path(path).read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return None


def hardware(device: str) -> str:
    """CPU model, cores and memory, and the GPU if it is the one measured."""
    parts = [first("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()]
    flags = (first("/proc/cpuinfo", "flags") or "").split()
    parts += [isa for isa in ("avx512f", "avx2") if isa in flags][:1]
    parts.append(f"{os.cpu_count()} cores")
    if memory := first("/proc/meminfo", "MemTotal"):
        parts.append(f"{int(memory.split()[0]) / 2**20:.0f} GiB")
    if device == "cuda":
        gpu = torch.cuda.get_device_properties(0)
        parts += [gpu.name, f"{gpu.total_memory / 2**30:.0f} GiB"]
        parts.append(f"triton {library_version('triton')}")
    else:
        parts.append(f"OMP_WAIT_POLICY={os.environ.get('OMP_WAIT_POLICY', 'default')}")
    return ", ".join(parts)


def git(*arguments: str) -> str | None:
    """What git says about this repository, or None where it says nothing."""
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=20
        ).stdout.strip()
    return None


def library_version(library: str) -> str:
    """The version of a library, also where it lies in a folder without metadata; empty if unknown."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(library)
    return str(getattr(sys.modules.get(library.replace("-", "_")), "__version__", ""))


def describe(device: str, commit: str | None = None) -> Machine:
    """The `Machine` this runs on. Results of earlier runs do not make the tree dirty.

    ``commit`` is for a copy of the tree without its history.
    """
    changes = None if commit else git("status", "--porcelain", "--", ".", ":!benchmarks/results")
    return Machine(
        machine=hardware(device),
        python=platform.python_version(),
        torch=torch.__version__,
        commit=commit or git("rev-parse", "--short=10", "HEAD") or "unknown",
        dirty="unknown" if changes is None else "yes" if changes else "no",
    )
