"""The program as a whole: help, exit statuses, and one line for every error a user can cause."""

import errno
import re
import subprocess
import sys
from collections import Counter
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


def run(*arguments, code=None):
    """The program, or Python code, in a process of its own."""
    start = ["-m", "treelax"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *map(str, arguments)], capture_output=True, text=True, check=False
    )


# ------------------------------------------------------------------ help and version


def words_of(shown):
    return Counter(re.sub("[╭╮╰╯│─]", " ", shown).split())


def test_every_help(capsys, monkeypatch):
    """Fits into 80 columns, has an example of its command, and shows no types of Python."""
    monkeypatch.setenv("COLUMNS", "80")
    waiting: list[tuple[tuple[str, ...], Any]] = [((), typer.main.get_command(app))]
    for path, command in waiting:  # which grows
        inner = getattr(command, "commands", {})
        waiting += [((*path, name), row) for name, row in inner.items()]
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
        if not path:
            words = [line.split()[1] for line in shown.splitlines() if line.startswith("│ ")]
            assert [w for w in words if w in program.COMMANDS] == list(program.COMMANDS)
    assert len(waiting) > 20


def test_no_arguments_show_the_help(capsys):
    assert main([]) == 2
    output = capsys.readouterr()
    assert "Usage: treelax" in output.out
    assert output.err == ""


# ------------------------------------------------------------------ errors


def test_what_needs_no_tensor_does_not_wait_for_torch():
    """It takes seconds to load."""
    code = (
        "import sys; from treelax.__main__ import main\n"
        "for line in sys.argv[1:]: main(line.split())\n"
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    done = run("--version", "train --help", "table sst --help", code=code)
    assert done.stdout.startswith(f"treelax {treelax.__version__}\n")
    assert done.stderr == "False\n"


MEMORY = r"memory ran out.*train\.batch_size.*data\.max_length"
RESUME = r"(interrupted|ended by SIGTERM); continue a training run with --resume"


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (DataError("a.tsv, line 3: is wrong"), 2, "error: a.tsv, line 3: is wrong$"),
        (TreelaxError("first\n  second"), 2, "error: first second$"),
        (OSError(errno.ENOSPC, "No space left", "a.tsv"), 2, "error: a.tsv: No space left$"),
        (PermissionError(errno.EACCES, "Permission denied"), 2, "error: Permission denied$"),
        (OSError("no number"), 2, "error: no number$"),
        (MemoryError(), 2, MEMORY),
        (torch.OutOfMemoryError("CUDA out of memory.\nMore of it."), 2, MEMORY),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), 2, MEMORY),
        (KeyboardInterrupt(), 130, RESUME),
        (typer.Abort(), 130, RESUME),
        (Terminated(), 143, RESUME),
        (ValueError("a bug"), None, ""),  # a fault of the program is raised
        (RuntimeError("a bug"), None, ""),
    ],
)
def test_what_becomes_of_an_error(capsys, monkeypatch, error, status, message):
    """One line on stderr, after a traceback if that is asked for."""
    program_of_tests = typer.Typer()

    @program_of_tests.command()
    def fail():
        raise error

    program_of_tests.command("other")(lambda: None)
    monkeypatch.setattr(program, "app", program_of_tests)
    if status is None:
        with pytest.raises(type(error), match="a bug"):
            main(["fail"])
        return
    assert main(["fail"]) == status
    output = capsys.readouterr()
    assert output.out == ""
    assert re.fullmatch(f"treelax: .*{message}.*\n", output.err)
    if status == 2:
        monkeypatch.setenv("TREELAX_DEBUG", "1")
        assert main(["fail"]) == 2
        traced = capsys.readouterr().err
        assert traced.startswith("Traceback")
        assert traced.endswith(output.err)


def test_a_closed_pipe():
    with subprocess.Popen(
        [sys.executable, "-m", "treelax", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # it has not got so far as to write: it still loads its modules
        reply = process.stderr.read()
    assert "Error" not in reply
    assert "Traceback" not in reply
    assert process.returncode == 1


def test_without_the_extra_it_says_what_to_install():
    done = run(
        code="import sys; sys.modules['rich'] = None\n"
        "from treelax.__main__ import main; sys.exit(main(['--help']))"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"treelax: error: needs rich: {install_command('train')}\n"
