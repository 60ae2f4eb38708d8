"""Learning rates: the paper's plateau rule, half a cosine, and none."""

from __future__ import annotations

import json

import pytest

from treelax.apps.training.loop import Schedule


@pytest.mark.parametrize(
    ("improve_on", "patience", "scores", "reloads"),
    [
        ("best", 3, [50, 60, 60, 55, 59, 61, 1, 2, 3, 61, 61, 61, 62], [5, 9, 12]),
        ("previous", 2, [50, 40, 45, 44, 44, 43, 43, 44], [5, 7]),
    ],
)
def test_the_plateau_rule_by_hand(
    improve_on: str, patience: int, scores: list[int], reloads: list[int]
) -> None:
    schedule = Schedule("plateau", 1.0, 20, patience, decay=0.5, improve_on=improve_on)
    for epoch, score in enumerate(scores, 1):
        assert schedule.current(epoch) == 0.5 ** sum(reload < epoch for reload in reloads)
        assert schedule.update(score) == (epoch in reloads)
    assert schedule.best == max(scores)


@pytest.mark.parametrize("kind", ["plateau", "plateau previous", "cosine"])
def test_a_schedule_goes_on_from_its_state(kind: str) -> None:
    scores = [50.0, 40, 45, 50, 51, 50, 50, 50]

    def follow(schedule: Schedule, first: int) -> list[tuple[float, bool]]:
        return [
            (schedule.current(epoch), schedule.update(score))
            for epoch, score in enumerate(scores[first:], first + 1)
        ]

    def new() -> Schedule:
        rule, _, improve_on = kind.partition(" ")
        return Schedule(rule, 0.1, 8, patience=2, decay=0.9, improve_on=improve_on or "best")

    for epochs in (0, 1, 3, 4):
        interrupted, resumed = new(), new()
        for score in scores[:epochs]:
            interrupted.update(score)
        resumed.restore(json.loads(json.dumps(interrupted.state())))  # as a checkpoint keeps it
        assert follow(resumed, epochs) == follow(new(), 0)[epochs:]
