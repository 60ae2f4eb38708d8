"""How a task describes a table of the paper; `treelax.lab.analysis.tables` makes it from runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

Record = dict[str, Any]
SPLITS = ("dev", "test")  # of which results have figures
# the key of a record, whose mean and spread over seeds a cell shows, or what makes it or its values
Column = str | Callable[[Sequence[Record]], str | list[float | None]]


@dataclass(frozen=True)
class PaperTable(ABC):
    """A table of the paper, with a row for each preset and columns for our runs.

    Attributes:
        figures: what the paper prints for the preset of each row; None if it has no such row.
        labels: what each preset is; those that are not among `figures` are further rows.
        columns: ours, by their headings.
        shown: headings of our columns that fit a terminal.
        paper: heading of the paper's figures; empty if it has no such table.
    """

    title: str
    figures: Mapping[str, str | None]
    labels: Mapping[str, str]
    columns: Mapping[str, Column]
    shown: Collection[str]
    paper: str = ""

    keys: ClassVar[tuple[str, ...]]  # columns of runs.csv
    named_after: ClassVar[Collection[str]]  # settings that name a row where rows differ in them
    curves: ClassVar[tuple[str, ...]] = ()  # dev figures in curves.csv
    panels: ClassVar[Mapping[str, str]] = {}  # titles of the curves to plot
    plots: ClassVar[Mapping[str, Mapping[str, str]]] = {}  # labels of the presets in each plot
    measured: ClassVar[tuple[str, ...]] = ()  # figures of each split of a result
    counted: ClassVar[str] = ""  # what the sizes of splits count

    def record(self, result: Record, log: Sequence[Record] = ()) -> Record:
        """A line of ``runs.csv``, from the ``test.json`` and the metrics of a run."""
        line = {key: result.get(key) for key in self.keys}
        line["seconds"] = round(result["seconds"], 1)
        for split in SPLITS:
            figures = result["splits"].get(split, {})
            line[f"{split}_{self.counted}"] = figures.get(self.counted)
            for key in self.measured:
                # rounded here, once, so that all that is made from the records agrees
                value = figures.get(key)
                line[f"{split}_{key}"] = None if value is None else round(value, 3)
        return line

    @abstractmethod
    def about(self, runs: Sequence[tuple[Any, Record]]) -> str:
        """A paragraph on data and figures, from the configs and results of the runs."""

    def row_config(self, config: Any) -> Any:
        """The config of a run without settings that its row has no use for."""
        return config

    def adapted(self, config: Any) -> PaperTable:
        """The table for runs with these settings: without the paper's figures if it has no such."""
        return self
