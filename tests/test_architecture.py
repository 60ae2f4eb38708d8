"""Rules of the house: one-way imports, a light import, few public names."""

import ast
import functools
import graphlib
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import treelax

PACKAGE = Path(__file__).parent.parent / "src" / "treelax"
# what a part may import from: parts of its own level or below; the library, then apps, then the lab
LEVELS = [
    {"errors"},
    {"ops", "files"},
    {"interface", "noise", "trees", "brackets"},
    {"distributions", "structures"},
    {"estimators"},
    {"convert", "nn"},
    {"apps", "apps.table"},
    {"apps.data"},
    {"apps.training"},
    {"apps.tasks"},
    {"apps.pictures"},
    {"apps.cli", "apps.demo"},
    {"lab", "lab.listops", "lab.plots", "lab.tables"},
    {"lab.analysis"},
    {"lab.report"},
    {"lab.cli"},
    {"__main__"},
]
LEVEL = {f"treelax.{part}": level for level, parts in enumerate(LEVELS) for part in parts}
RINGS = ("treelax.apps", "treelax.lab")
# the doors between the rings: these files may name a module of another one in a string
DOORS = {"treelax", "treelax.__main__"}
HEAVY = ("triton", "matplotlib", "fastapi", "conllu", "nltk", "numpy.testing", "pandas", "rich")


def test_one_place_names_the_extras_to_install():
    texts = {path.relative_to(PACKAGE): path.read_text() for path in PACKAGE.rglob("*.py")}
    assert [str(path) for path, text in texts.items() if "treelax[" in text] == ["errors.py"]


def files() -> dict[str, Path]:
    """The file of each module."""
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in PACKAGE.rglob("*.py")
    }


@functools.cache
def imported_files() -> dict[str, set[str]]:
    """For each module those that its file imports anywhere: in functions and for types, too."""
    modules = files()
    graph = {}
    for module, path in modules.items():
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: relative import"
                wholes = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= {name if name in modules else node.module for name in wholes}
        graph[module] = names & modules.keys() - {module}
    return graph


def level(module: str) -> int:
    """Of the longest part that a module is in."""
    while module not in LEVEL:
        module = module.rpartition(".")[0]
    return LEVEL[module]


def test_imports_run_one_way():
    graph = dict(imported_files())
    assert not graph.pop("treelax")  # it names its parts in strings
    for module, imported in graph.items():
        for other in imported - {"treelax"}:
            assert level(other) <= level(module), f"{module} imports {other} from above"
    assert {other.split(".")[1] for other in graph["treelax.noise"]} == {"errors", "ops"}


def test_rings_name_no_ring_around_them():
    for module, path in files().items():
        ring = next((i for i, name in enumerate(RINGS, 1) if module.startswith(name)), 0)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = [name for name in RINGS[ring:] if node.value.startswith(f"{name}.")]
                assert not named or module in DOORS, f"{module} names {node.value}"


def test_tasks_never_import_one_another():
    """What several share is beside them; the lab adds to the task whose name it has."""
    tasks = {path.name for path in (PACKAGE / "apps" / "tasks").iterdir() if path.is_dir()}
    tasks -= {"sentences", "__pycache__"}
    for module, imported in imported_files().items():
        own = module.removeprefix("treelax.apps.tasks.").split(".")[0]
        for other in imported if own in {*tasks, "sentences"} else ():
            name = other.removeprefix("treelax.apps.tasks.").split(".")[0]
            assert name not in tasks - {own}, f"{module} imports {other}"


def test_imports_of_files_have_no_circle():
    graphlib.TopologicalSorter(imported_files()).prepare()  # raises an error with the circle


def test_the_stub_types_every_public_name():
    """mypy and editors read `__init__.pyi`, as `__init__.py` imports a name when it is first used."""
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    homes = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert homes == {
        name: f"treelax.{treelax._HOMES[name]}" if name in treelax._HOMES else "treelax"
        for name in treelax.__all__
    }


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
    assert not [name for name in loaded if name.startswith(("treelax.apps.data", RINGS[1]))]


def test_the_program_loads_torch_last():
    """So that it can say before how torch's threads wait."""
    code = (
        "import sys, os, treelax.__main__; "
        "print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'])"
    )
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
