"""What a task says of a table of the paper; `treelax.analysis.tables` makes one from runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

Record = dict[str, Any]
# the key of a record, whose mean and spread over seeds a cell shows, or what makes the cell
Column = str | Callable[[Sequence[Record]], str]


class PaperTable(ABC):
    """A table of the paper, with columns for our runs.

    Attributes:
        title: what it shows.
        paper: heading of the paper's figures.
        keys: of a record, for ``runs.csv``.
        named_after: settings that rows are named after where they differ in them.
        curves: dev figures that ``curves.csv`` keeps of every epoch.
        panels: those that are plotted, and what they are called.
        plots: for each plot its presets, and what they are called.
    """

    title: str
    paper: str
    keys: ClassVar[tuple[str, ...]]
    named_after: ClassVar[Collection[str]]
    curves: ClassVar[tuple[str, ...]] = ()
    panels: ClassVar[Mapping[str, str]] = {}
    plots: ClassVar[Mapping[str, Mapping[str, str]]] = {}

    @property
    @abstractmethod
    def figures(self) -> Mapping[str, str | None]:
        """What the paper prints for the preset of each row; None if it has no such row."""

    @property
    @abstractmethod
    def labels(self) -> Mapping[str, str]:
        """What each preset is, in words; presets that are not among `figures` are further rows."""

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, Column]:
        """Our columns, by their headings."""

    @property
    @abstractmethod
    def shown(self) -> Collection[str]:
        """Headings of our columns that fit a terminal."""

    @abstractmethod
    def record(self, result: Record, log: Sequence[Record] = ()) -> Record:
        """A line of ``runs.csv``, from the ``test.json`` and the metrics of a run."""

    @abstractmethod
    def about(self, runs: Sequence[tuple[Any, Record]]) -> str:
        """A paragraph on data and figures, from the configs and results of the runs."""

    def row_config(self, config: Any) -> Any:
        """The config of a run without settings that its row has no use for."""
        return config

    def adapted(self, config: Any) -> PaperTable:
        """The table for runs with these settings: without the paper's figures if it has no such."""
        return self
