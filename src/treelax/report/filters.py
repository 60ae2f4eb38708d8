"""The form above the gallery; the script of the page shows it, for without one it can do nothing."""

from __future__ import annotations

from collections.abc import Sequence

from treelax.report.markup import Html, tag

__all__ = ["filter_form"]

VERDICTS = {"": "all", "1": "right", "0": "wrong"}
TREES = {"": "all", "1": "gold tree", "0": "not the gold tree"}


def filter_form(
    *,
    runs: Sequence[str],
    labels: Sequence[str],
    label_title: str,
    lengths: tuple[int, int],
    verdicts: bool,
    gold: bool,
    count: int,
) -> Html:
    """The fields that choose among the examples; those that could choose nothing are left out."""
    least, most = lengths
    fields = [
        _field("text", "Words", tag("input", type="search", id="f-text", autocomplete="off")),
        _field("least", "Length from", _number("least", least, most, least)),
        _field("most", "to", _number("most", least, most, most)),
    ]
    if verdicts:
        fields.append(_select("right", "Prediction", VERDICTS))
    if gold:
        fields.append(_select("exact", "Tree", TREES))
    if len(labels) > 1:
        numbered = {str(i): label for i, label in enumerate(labels)}
        fields.append(_select("label", label_title, {"": "all"} | numbered))
    if len(runs) > 1:
        numbered = {str(i): run for i, run in enumerate(runs)}
        fields.append(_select("run", "Run", {"": "all"} | numbered))
    shown = tag("output", f"{count} of {count} examples", id="shown", aria_live="polite")
    reset = tag("button", "Show all", type="reset")
    return tag("form", *fields, reset, shown, id="filters", hidden=True, aria_label="Filters")


def _field(name: str, title: str, control: Html) -> Html:
    return tag("div", tag("label", title, for_=f"f-{name}"), control)


def _number(name: str, least: int, most: int, value: int) -> Html:
    return tag("input", type="number", id=f"f-{name}", min=least, max=most, value=value)


def _select(name: str, title: str, options: dict[str, str]) -> Html:
    choices = [tag("option", text, value=value) for value, text in options.items()]
    return _field(name, title, tag("select", *choices, id=f"f-{name}"))
