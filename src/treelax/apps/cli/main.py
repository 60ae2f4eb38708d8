"""How the program ``treelax`` runs: its options, and what becomes of errors."""

from __future__ import annotations

import itertools
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from signal import SIGINT, SIGTERM
from typing import TYPE_CHECKING, Annotated, Any

import treelax
from treelax.errors import Terminated, TreelaxError, install_command

MISSING = [name for name in ("typer", "rich") if find_spec(name) is None]
if TYPE_CHECKING or not MISSING:
    import typer
    import typer.main

# exit statuses, those of signals as a shell has them
FAILED, INTERRUPTED, TERMINATED, CLOSED_PIPE = 2, 128 + SIGINT, 128 + SIGTERM, 1
MEMORY = (
    "memory ran out: lower the batch size (--set train.batch_size=..., or --batch-size) or the "
    "greatest length (--set data.max_length=..., or --max-length)."
)
PREFIX = "treelax: "  # what all warnings of this library begin with
HELP = """Learn latent trees from the task alone.

Look at a model that comes with treelax, then train your own; every command
has its own --help.

Examples:
  treelax parse "I saw the man with the telescope."
  treelax demo --open
  treelax train listops --preset small --out runs/listops
  treelax train classify --train train.tsv --dev dev.tsv --text review \\
      --label stars --out runs/stars
  treelax predict runs/stars new.tsv --out stars.jsonl
"""


def run(app: Any, arguments: Sequence[str] | None = None) -> int:
    """Run a program of `create_app`; every error that a user can cause becomes one line on stderr.

    With ``TREELAX_DEBUG=1`` in the environment a traceback comes before that line. All other errors
    are raised as they are.
    """
    if MISSING:
        return _fail(f"needs {' and '.join(MISSING)}: {install_command('train')}")
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # a stream that another program has put in place
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        if "RANK" in os.environ or "WORLD_SIZE" in os.environ:
            # not always: torch comes with it, which takes seconds to load
            from treelax.apps.training.distributed import quiet_unless_first

            quiet_unless_first()
        with _warnings_as_notes():
            status = _command(app)(arguments, prog_name="treelax", standalone_mode=False)
        sys.stdout.flush()  # when the interpreter ends it is too late to catch an error
    except BrokenPipeError:
        # what is still in the buffer must go somewhere when the interpreter ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except Terminated:
        status = TERMINATED
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error, end="")  # empty where typer has printed the help itself
            return FAILED
        message = _explanation(error, sys.argv[1:] if arguments is None else arguments)
        if message is None:
            raise
        if os.environ.get("TREELAX_DEBUG", "0") != "0":
            traceback.print_exc()
        return _fail(message)
    if status in (INTERRUPTED, TERMINATED):
        how = "interrupted" if status == INTERRUPTED else "ended by SIGTERM"
        advice = "continue a training run with --resume, a table with the same command"
        print(f"treelax: {how}; {advice}", file=sys.stderr)
    return status if isinstance(status, int) else 0


@cache
def _command(app: Any) -> Any:
    """The commands of a program, which take a while to put together."""
    return typer.main.get_command(app)


def _explanation(error: Exception, arguments: Sequence[str]) -> str | None:
    """The message for the user of an error; None if it is a fault of the program."""
    if isinstance(error, TreelaxError):
        return str(error)
    torch = sys.modules.get("torch")  # without it, it cannot have raised the error
    if (
        isinstance(error, MemoryError)
        or (torch is not None and isinstance(error, torch.OutOfMemoryError))
        or (isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error))
    ):
        return " ".join([MEMORY, *str(error).splitlines()[:1]])
    if isinstance(error, OSError):
        file = "" if error.filename is None else f"{error.filename}: "
        return f"{file}{error.strerror or error}"
    if hasattr(error, "format_message"):  # typer's, from click or its copy of it by version
        context = getattr(error, "ctx", None)
        path = "treelax" if context is None else context.command_path
        hint = _as_setting(str(getattr(error, "option_name", "")), context, arguments)
        message = error.format_message().removesuffix(".")
        for leaked in ("Value error, ", "dir "):  # of pydantic, of click
            message = message.replace(f": {leaked}'", ": '")
        return f"{message}{hint}; see {path} --help"
    return None


def _as_setting(option: str, context: Any, arguments: Sequence[str]) -> str:
    """A word on the settings that an unknown option is named after, if there are any."""
    from treelax.apps.tasks import task_named
    from treelax.apps.training.config import field_kinds

    name = option.lstrip("-").replace("-", "_")
    task = getattr(getattr(context, "command", None), "task", None)
    if task is None or name in ("preset", "seed"):  # which --set refuses
        return ""
    words = " ".join(arguments).replace("=", " ").split()
    value = dict(itertools.pairwise(words)).get(option, "VALUE")
    keys = field_kinds(task_named(task).config_type)
    meant = [f"--set {key}={value}" for key in keys if name in (key, key.rpartition(".")[2])]
    return f"; expected {' or '.join(meant)}" if meant else ""


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Show warnings of the library as one line, ``note: ...``, and those of others as they are."""
    usual = warnings.formatwarning

    def formatted(message: Warning | str, *where: Any, **more: Any) -> str:
        text = str(message)
        if not text.startswith(PREFIX):
            return usual(message, *where, **more)
        return f"note: {' '.join(text.removeprefix(PREFIX).split())}\n"

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _fail(message: str) -> int:
    """Print an error as one line."""
    line = " ".join(["treelax: error:", *(part.strip() for part in message.splitlines())])
    print(line, file=sys.stderr)
    return FAILED


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"treelax {treelax.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


def create_app(modules: Mapping[str, str]) -> Any:
    """The program with the commands of modules, by their names in the order of the help.

    Each module has a function ``register(app)``. None where the libraries of the program are missing.
    """
    if MISSING:
        return None
    from treelax.apps.cli.commands import Group

    class InOrder(Group):
        """The commands in the order in which they are used; typer puts groups last."""

        def list_commands(self, ctx: Any) -> list[str]:
            return [name for name in modules if name in self.commands]

    program = typer.Typer(
        cls=InOrder,
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    program.callback()(_options)
    for module in modules.values():
        import_module(module).register(program)
    return program
