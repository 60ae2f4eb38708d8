"""``treelax eval``: figures of a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from treelax.cli.console import progress

HELP = """Evaluate a trained model: the folder of a run, a model file, or listops for the built-in one.

Without --data a run is evaluated on its own test set and the built-in model on a generated one.

Example:
  treelax eval listops --data test_d20s.tsv --max-length 100 --json
  treelax eval runs/small
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("eval", help=HELP)(evaluate)


def evaluate(
    model: Annotated[str, typer.Argument(metavar="RUN", help="Run, file, or listops.")],
    data: Annotated[
        Path | None, typer.Option(help="File in the format of ListOps: VALUE<TAB>EXPRESSION.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Leave out longer expressions.")
    ] = None,
    min_length: Annotated[int, typer.Option(min=1, help="Leave out shorter ones.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")] = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Evaluate."""
    import json
    from dataclasses import asdict

    from treelax.cli.figures import print_evaluation
    from treelax.data.listops import read_listops
    from treelax.tasks.listops.evaluation import evaluate as run_evaluation
    from treelax.tasks.listops.experiment import load_splits
    from treelax.training.devices import find_device
    from treelax.training.models import load_model

    loaded = load_model(model, device=find_device(device))
    if data is not None:
        expressions = read_listops(data, min_length=min_length, max_length=max_length)
        title = str(data)
    else:
        limit = max_length or loaded.config.data.max_length
        expressions = [
            e
            for e in load_splits(loaded.config.data).expressions["test"]
            if min_length <= len(e) <= limit
        ]
        title = "test set of the run"
    with progress("evaluating", len(expressions), unit="expression", transient=True) as bar:
        figures = run_evaluation(loaded.model, expressions, progress=bar.update)
    if as_json:
        record = {"model": str(model), "data": title, "max_length": max_length}
        print(json.dumps(record | asdict(figures)))
        return
    print_evaluation(figures, title)
