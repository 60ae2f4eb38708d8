"""The program as a whole: help, exit statuses, and one line for every error a user can cause."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import typer

import treelax
import treelax.__main__ as program
import treelax.apps.cli
from treelax.__main__ import app, main
from treelax.errors import DataError, Terminated, TreelaxError, install_command

SAMPLE = Path(__file__).parent.parent / "data" / "listops_sample.tsv"


def run(*arguments: str | Path, code: str | None = None) -> subprocess.CompletedProcess[str]:
    """The program, or Python code, in a process of its own."""
    start = ["-m", "treelax"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Let the program have two commands, of which ``fail`` raises the error that is given."""

    def give(error: BaseException) -> None:
        fake = typer.Typer()

        @fake.command()
        def fail() -> None:
            raise error

        @fake.command()
        def other() -> None:
            pass

        monkeypatch.setattr(program, "app", fake)

    return give


# ------------------------------------------------------------------ help and version


def words_of(shown: str) -> Counter[str]:
    return Counter(re.sub("[╭╮╰╯│─]", " ", shown).split())


def test_every_help(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits into 80 columns, has an example of its command, and shows no types of Python."""
    monkeypatch.setenv("COLUMNS", "80")
    waiting: list[tuple[tuple[str, ...], Any]] = [((), typer.main.get_command(app))]
    for path, command in waiting:  # which grows
        inner = getattr(command, "commands", {})
        waiting += [((*path, name), each) for name, each in inner.items()]
        assert main([*path, "--help"]) == 0
        shown = capsys.readouterr().out
        assert re.search(rf"^ *\w*Examples?:.*  treelax {' '.join(path)}", shown, re.M | re.S), path
        assert max(map(len, shown.splitlines())) <= 80
        assert max(map(len, command.help.splitlines())) <= 78  # wider lines would be wrapped
        assert not re.search("<(bool|str|int|float|path|list)|list\\[", shown)
        with monkeypatch.context() as wide:
            wide.setenv("COLUMNS", "300")
            assert main([*path, "--help"]) == 0
        # no word is broken: a range such as [0<=x<=7], a choice, the name of an option
        assert words_of(shown) == words_of(capsys.readouterr().out), path
        if path in ((), ("data", "listops")):
            assert (main([*path, "-h"]), capsys.readouterr().out) == (0, shown)
    assert len(waiting) > 20


def test_help_shows_the_commands_in_the_order_of_their_use(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    words = [line.split()[1] for line in shown.splitlines() if line.startswith("│ ")]
    commands = [word for word in words if not word.startswith("-")]
    assert [word for word in commands if word in program.COMMANDS] == list(program.COMMANDS)
    assert "completion" not in shown


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    output = capsys.readouterr()
    assert "Usage: treelax" in output.out
    assert output.err == ""


def test_version_from_a_process() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"treelax {treelax.__version__}\n",
        "",
    )


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("arguments", "said", "where"),
    [
        (["--nonsense"], "--nonsense", "treelax --help"),
        (["nonsense"], "nonsense", "treelax --help"),
        (["data", "listops", "--variant", "other"], "'paulus'", "treelax data listops --help"),
        (["figure", "relaxation", "--temperature", "hot"], "--temp", "treelax figure relaxation -"),
        (["analyse"], "RUN...", "treelax analyse --help"),
        (["parse", "--sofd"], "--soft", "treelax parse --help"),
        (["eval", "x", "y", "z"], "y z", "treelax eval --help"),
        (["train", "listops", "--epochs", "3"], "expected --set train.epochs=3;", "treelax train"),
        (["train", "tag", "--batch-size=8"], "expected --set train.batch_size=8;", "treelax train"),
        (["table", "sst", "--epochs"], "expected --set train.epochs=VALUE;", "treelax table"),
        # not what --set refuses
        (["train", "tag", "--preset", "x"], "--set, --test); see", "treelax train tag --help"),
        (["table", "sst", "--seed", "1"], "--seeds, --set); see", "treelax table sst --help"),
        # without the words of libraries
        (["predict", "x", "y", "--input", "z"], "'--input': 'z' is not one", "treelax predict"),
        (["analyse", "x", "--out", __file__], f"'--out': '{__file__}' is a file", "treelax ana"),
        (["figure", "relaxation", "--temperature", "0"], "or equal to 0.01;", "treelax figure"),
    ],
)
def test_usage_errors(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str, where: str
) -> None:
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("treelax: error: ")
    assert f"; see {where}" in output.err
    assert said in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["--version"], ["train", "--help"], ["table", "sst", "--help"]]
)
def test_what_needs_no_tensor_does_not_wait_for_torch(arguments: list[str]) -> None:
    """It takes seconds to load."""
    code = (
        "import sys; from treelax.__main__ import main; main(sys.argv[1:]); "
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    done = run(*arguments, code=code)
    assert done.stderr.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DataError("a.tsv, line 3: is wrong"), "a.tsv, line 3: is wrong"),
        (TreelaxError("first\n  second"), "first second"),
        (
            OSError(errno.ENOSPC, "No space left on device", "a.tsv"),
            "a.tsv: No space left on device",
        ),
        (PermissionError(errno.EACCES, "Permission denied"), "Permission denied"),
        (OSError("no number"), "no number"),
    ],
)
def test_an_error_is_one_line(
    capsys: pytest.CaptureFixture[str],
    failing: Callable[[BaseException], None],
    error: Exception,
    said: str,
) -> None:
    failing(error)
    assert main(["fail"]) == 2
    assert capsys.readouterr() == ("", f"treelax: error: {said}\n")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory.\nMore of it."),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"
        ),
    ],
)
def test_out_of_memory_names_the_settings(
    capsys: pytest.CaptureFixture[str], failing: Callable[[BaseException], None], error: Exception
) -> None:
    failing(error)
    assert main(["fail"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("treelax: error: memory ran out")
    assert "train.batch_size" in said
    assert "data.max_length" in said
    assert said.count("\n") == 1


def test_debug_shows_the_traceback_before_the_line(
    capsys: pytest.CaptureFixture[str],
    failing: Callable[[BaseException], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TREELAX_DEBUG", "1")
    failing(DataError("wrong"))
    assert main(["fail"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-1] == "treelax: error: wrong"


@pytest.mark.parametrize("error", [ValueError("a bug"), RuntimeError("a bug")])
def test_a_fault_of_the_program_is_raised(
    failing: Callable[[BaseException], None], error: Exception
) -> None:
    failing(error)
    with pytest.raises(type(error), match="a bug"):
        main(["fail"])


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), 130), (typer.Abort(), 130), (Terminated(), 143)]
)
def test_an_interrupted_run_can_go_on(
    capsys: pytest.CaptureFixture[str],
    failing: Callable[[BaseException], None],
    error: BaseException,
    status: int,
) -> None:
    failing(error)
    assert main(["fail"]) == status
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert "--resume" in output.err


def test_nobody_reads_the_output() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "treelax", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # it has not got so far as to write: it still loads its modules
        said = process.stderr.read()
    assert "Error" not in said
    assert "Traceback" not in said
    assert process.returncode == 1


def test_without_the_extra_it_says_what_to_install() -> None:
    done = run(
        code="import sys; sys.modules['rich'] = None\n"
        "from treelax.__main__ import main; sys.exit(main(['--help']))"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"treelax: error: needs rich: {install_command('train')}\n"
