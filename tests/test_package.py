"""Installing: with a compiler the kernel is there, without one everything still works."""

import importlib.resources
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import torch
from torch import Tensor

import treelax
from treelax.ops import dispatch, native

ROOT = Path(__file__).parent.parent


def test_tab_completion_shows_the_interface_alone():
    assert sorted(dir(treelax)) == sorted([*treelax.__all__, "__version__"])
    for module in (treelax.noise, treelax.trees):
        assert dir(module) == sorted(module.__all__)


def test_types_that_an_editor_shows():
    """What mypy is told: a tree is a tensor, and a misspelt noise is an error."""
    assert get_type_hints(treelax.ProjectiveTrees.mode.fget)["return"] is Tensor
    for method in (treelax.ProjectiveTrees.rsample, treelax.nn.LatentTree.__init__):
        literal, _ = get_args(get_type_hints(method)["noise"])
        assert set(get_args(literal)) == set(treelax.noise.NOISES)


USE = """
import sys, warnings
# an editable install answers before sys.path does
sys.meta_path = [f for f in sys.meta_path if "Redirect" not in type(f).__name__]
sys.path.insert(0, {target!r})
import torch, treelax
assert treelax.__file__.startswith({target!r}), treelax.__file__
scores = torch.randn(3, 6, 6, requires_grad=True)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(3):
        tree = treelax.ops.soft_tree(scores)
        tree.square().sum().backward()
        treelax.ops.best_tree(scores)
        treelax.ProjectiveTrees(scores.detach()).sample()
from treelax.ops import dispatch
said = [str(s.message) for s in said if "treelax" in str(s.message)]
print(dispatch.choose("", "cpu"), len(said), *said, sep="|")
"""


# where an installation in place has it, too
KERNEL = importlib.resources.files("treelax.ops") / "libtreelax_native.so"
# A compiler that leaves our sources empty and links the library that make setup has built: the test is
# whether CMake finds a compiler and its product is in the wheel.
QUICK = f"""#!/bin/sh
case "$*" in
  *" -shared "*libtreelax_native.so*)
    for word; do
      case "$last" in -o) cp {KERNEL} "$word" ;; esac
      last=$word
    done
    exit ;;
esac
for word; do
  shift
  case "$word" in */native/*.cpp) set -- "$@" -x c++ /dev/null ;; *) set -- "$@" "$word" ;; esac
done
exec c++ "$@" -O0
"""


def build_wheel(folder: Path, **environment: str) -> Path:
    """Build a wheel from a copy of the tracked sources, so that no build product of ours is used."""
    source = folder / "source"
    listed = ["git", "ls-files", "src", "native", "pyproject.toml", "README.md", "LICENSE"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in files.splitlines():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"),
            *("--disable-pip-version-check", "-w", str(folder), str(source)),
        ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def use(wheel: Path, folder: Path, **environment: str) -> list[str]:
    target = str(folder / "installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    done = subprocess.run(
        [sys.executable, "-c", USE.format(target=target)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split("|")


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_with_a_compiler(tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text(QUICK)
    compiler.chmod(0o755)
    wheel = build_wheel(tmp_path, CXX=str(compiler))
    assert any(name.endswith("libtreelax_native.so") for name in names(wheel))
    assert {"treelax/py.typed", "treelax/__init__.pyi"} <= set(names(wheel))
    assert "treelax/apps/demo/static/app.js" in names(wheel)
    assert "treelax/ops/eisner/README.md" in names(wheel)
    variant = "v2" if platform.machine() in ("x86_64", "AMD64") else "generic"
    backend, notices = use(wheel, tmp_path, TREELAX_NATIVE=variant)[:2]
    assert (backend, notices) == ("native", "0")


def test_without_a_compiler(tmp_path):
    """CMake fails, the build is tried again without it, and `diagonal` serves with one notice."""
    wheel = build_wheel(tmp_path, CXX="/nonexistent/compiler", CC="/nonexistent/compiler")
    assert not any(name.endswith(".so") for name in names(wheel))
    backend, notices, notice = use(wheel, tmp_path)
    assert (backend, notices) == ("diagonal", "1")
    assert "native backend is not available" in notice
    assert "not built" in notice


@pytest.mark.parametrize(
    ("variable", "reason"), [("off", "switched off"), ("v9", "this machine runs")]
)
def test_without_the_kernel(variable, reason, monkeypatch):
    """A platform or a wish without the kernel: the same, and asking for it by name says why."""
    monkeypatch.setenv("TREELAX_NATIVE", variable)
    native.forget()
    dispatch.choose.cache_clear()
    scores = torch.zeros(3, 3)
    with pytest.raises(treelax.TreelaxError, match=reason):
        treelax.ops.best_tree(scores, backend="native")
    with pytest.warns(RuntimeWarning, match="native backend is not available") as said:
        assert [treelax.ops.best_tree(scores).sum() for _ in range(3)] == [2, 2, 2]
    assert len(said) == 1
    native.forget()
    dispatch.choose.cache_clear()
