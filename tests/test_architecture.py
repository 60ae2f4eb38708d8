"""Rules of the house: one-way imports, a light import, few public names."""

import ast
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import treelax

PACKAGE = Path(__file__).parent.parent / "src" / "treelax"
# what a part may import from: parts of its own level or below
LEVELS = [
    {"errors", "table"},
    {"ops", "files"},
    {"noise", "trees", "brackets"},
    {"estimators", "distributions", "structures"},
    {"convert", "nn"},
    {"data"},
    {"training"},
    {"tasks"},
    {"analysis", "pictures"},
    {"report"},
    {"cli", "demo", "__main__"},
]
LEVEL = {part: level for level, parts in enumerate(LEVELS) for part in parts}
HEAVY = ("triton", "matplotlib", "fastapi", "conllu", "nltk", "numpy.testing", "pandas", "rich")


def modules():
    return sorted(
        p for p in PACKAGE.rglob("*.py") if p.name != "__init__.py" or p.parent != PACKAGE
    )


def test_one_place_names_the_extras_to_install():
    texts = {path.relative_to(PACKAGE): path.read_text() for path in PACKAGE.rglob("*.py")}
    assert [str(path) for path, text in texts.items() if "treelax[" in text] == ["errors.py"]


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "treelax":
                names = [f"treelax.{alias.name}" for alias in node.names]
            else:
                names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        parts |= {name.split(".")[1] for name in names if name.startswith("treelax.")}
    return parts


def test_imports_run_one_way():
    for path in modules():
        own = LEVEL[part_of(path)]
        for part in imported_parts(path):
            assert LEVEL[part] <= own, f"{path.relative_to(PACKAGE)} imports {part} from above"
    assert imported_parts(PACKAGE / "noise.py") == {"errors", "ops"}


def test_importing_treelax_is_light():
    """Beyond torch it loads no Triton, plotting, web or data library."""
    code = (
        "import sys, torch; before = set(sys.modules); from treelax import *; "
        "print('\\n'.join(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "treelax.ops.projective" in loaded
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]
    assert not [name for name in loaded if name.startswith("treelax.apps.data")]


def test_the_program_loads_torch_last():
    """So that it can say before how torch's threads wait."""
    code = "import sys, os, treelax.apps.cli; print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'])"
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split() == ["False", "PASSIVE"]


def test_few_public_names():
    assert len(treelax.__all__) <= 30  # structures, estimators, noise and the parts of the house
    for name in treelax.__all__:
        assert getattr(treelax, name) is not None
    assert metadata.version("treelax") == treelax.__version__
