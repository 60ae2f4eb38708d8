"""``treelax eval``: figures of a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treelax.cli.commands import command
from treelax.cli.options import Device
from treelax.cli.output import warn_of_long
from treelax.cli.progress import progress
from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.data.listops import Expression
    from treelax.training.models import TrainedModel

HELP = """Measure a trained ListOps model.

RUN is the folder of a run, a file model.safetensors, or listops for the model
that comes with treelax. Without --data it is measured on the test set that
belongs to its training data, which is generated from the same seed. Runs on
sentences print their figures at the end and keep them in test.json.

Examples:
  treelax eval runs/small
  treelax eval listops --data data/listops/test.tsv --max-length 40 --json
"""
NAMED = 5  # tokens that an expression is named by


def evaluate(
    model: Annotated[str, typer.Argument(metavar="RUN", help="Run, file, or listops.")],
    data: Annotated[
        Path | None, typer.Option(help="File in the format of ListOps: VALUE<TAB>EXPRESSION.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Leave out longer expressions, in tokens.")
    ] = None,
    min_length: Annotated[
        int, typer.Option(min=1, help="Leave out shorter expressions, in tokens.")
    ] = 1,
    device: Device = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Measure a model; see HELP."""
    import json
    from dataclasses import asdict

    from treelax.cli.evaluation_tables import print_evaluation
    from treelax.data.listops import read_listops
    from treelax.tasks.listops.evaluation import evaluate as run_evaluation
    from treelax.training.devices import find_device
    from treelax.training.models import load_model

    loaded = load_model(model, device=find_device(device))
    if data is not None:
        expressions = read_listops(data, min_length=min_length, max_length=max_length)
        title = str(data)
    else:
        expressions = _own_test_set(loaded, min_length, max_length)
        title = "the model's own test set"
        # what the run left out of its data is not there to be kept
        own = loaded.config.data
        min_length = max(min_length, own.min_length)
        max_length = own.max_length if max_length is None else min(max_length, own.max_length)
    longest = max(expressions, key=len)
    named = f"the longest expression ({' '.join(longest.tokens[:NAMED])} ...)"
    warn_of_long(title, named, len(longest), "tokens")
    tokens = sum(map(len, expressions))
    with progress("evaluating", tokens, unit="token", transient=True) as bar:
        figures = run_evaluation(loaded.model, expressions, progress=bar.update)
    if as_json:
        record = {
            "model": str(model),
            "data": title,
            "min_length": min_length,
            "max_length": max_length,
        }
        typer.echo(json.dumps(record | asdict(figures)))
        return
    print_evaluation(figures, title)


def _own_test_set(
    loaded: TrainedModel, min_length: int, max_length: int | None
) -> list[Expression]:
    """The test expressions of the run that a model comes from."""
    from treelax.tasks.listops.experiment import load_test

    with progress("preparing the data", transient=True):
        test = load_test(loaded.config.data)
    limit = loaded.config.data.max_length if max_length is None else max_length
    kept = [expression for expression in test if min_length <= len(expression) <= limit]
    if not kept:
        lengths = sorted(map(len, test))
        raise InputError(
            f"--min-length and --max-length: received {min_length} and {limit}; expected to keep "
            f"some of the {len(test)} test expressions, which have {lengths[0]} to {lengths[-1]} "
            "tokens"
        )
    return kept


register = command("eval", HELP, evaluate)
