"""Learning rates: the paper's plateau rule, half a cosine, and none."""

from __future__ import annotations

import json

import pytest

from treelax.training.loop import Schedule


def test_the_plateau_rule_by_hand() -> None:
    schedule = Schedule("plateau", 1.0, epochs=20, patience=3, decay=0.5)
    rates, back = [], []
    #                   best        no better       best  no better
    for epoch, score in enumerate([50, 60, 60, 55, 59, 61, 1, 2, 3, 61, 61, 61, 62], 1):
        rates.append(schedule.current(epoch))
        back.append(schedule.update(score))
    assert [epoch for epoch, reload in enumerate(back, 1) if reload] == [5, 9, 12]
    assert rates == [1] * 5 + [0.5] * 4 + [0.25] * 3 + [0.125]
    assert schedule.best == 62


def test_an_epoch_may_have_to_beat_only_the_one_before() -> None:
    schedule = Schedule("plateau", 1.0, epochs=9, patience=2, decay=0.5, improve_on="previous")
    #                                            up      up      no better   up
    back = [schedule.update(score) for score in (50, 40, 45, 44, 44, 43, 43, 44)]
    assert [epoch for epoch, reload in enumerate(back, 1) if reload] == [5, 7]
    assert schedule.best == 50
    assert schedule.current(9) == 0.25


def test_the_cosine_falls_from_the_rate_to_almost_nothing() -> None:
    schedule = Schedule("cosine", 2.0, epochs=4)
    rates = [schedule.current(epoch) for epoch in range(1, 5)]
    assert rates == pytest.approx([2, 1.707, 1, 0.293], rel=1e-3)


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


def test_a_state_of_before_there_were_two_rules() -> None:
    schedule = Schedule("plateau", 1.0, epochs=9, patience=2)
    schedule.restore({"factor": 0.9, "best": 50.0, "waited": 1})
    assert schedule.update(49)
