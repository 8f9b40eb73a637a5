"""Which walks the study makes, what it keeps of them, and its tables."""

import json

import numpy as np
import pytest

from evidence.studies.walking import study
from evidence.studies.walking.rows import (
    ARM_SPEED_ROWS,
    LONG_ROWS,
    ROWS,
    STOP_AND_GO,
    StudyRow,
    random_pushes,
    stop_and_go,
)
from evidence.studies.walking.trial import WalkOutcome
from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.robots import load_robot


def test_rows_come_back_from_plain_values():
    for row in (*ROWS, *study.MORE_ROWS, *study.STOPPED):
        assert StudyRow.of(json.loads(json.dumps(study.asdict(row)))) == row


def test_long_walks_are_made_only_where_they_are_asked_for():
    usual = study.Choice().rows()
    assert not {r.group for r in usual} & set(study.ALONE)
    assert [r.group for r in usual].count(study.STOPS) == 1
    assert {r.robot for r in study.Choice(only=["long"]).rows()} == {"lola", "hrp2", "wabian2", "suralp"}
    assert {r.group for r in study.Choice(only=["twists", "stopgo"], robot="lola").rows()} == {"twists", "stopgo"}
    assert [r.name for r in study.Choice(only=["worlds"], walk="MuJoCo").rows()] == ["MuJoCo"]


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"only": ["maps", "speed"]}, "leave out all other parts"),
        ({"only": ["speed"], "ground": "plane:slope=3"}, "give ground or groups"),
        ({"steps": 0}, "steps must be"),
        ({"phases": 0}, "phases must be"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(choice, words):
    with pytest.raises(ConfigError, match=words):
        study.Choice(**choice)
    with pytest.raises(UnknownNameError, match="did you mean backward"):
        study.Choice(only=["ways"], walk="bakward").rows()


@pytest.mark.nightly
def test_walks_and_stops_that_are_kept_are_not_made_again(tmp_path, monkeypatch):
    """A walk and a stop, each from the file the second time, with the same tables."""
    file = tmp_path / "kept.jsonl"
    made = [
        study.run_study(workers=1, resume=file, only=["robots"], robot="lola", steps=2),
        study.run_study(workers=1, resume=file, only=["stops"], robot="lola", walk="0.5", phases=1),
    ]
    monkeypatch.setattr(study, "_do", None)
    again = [
        study.run_study(workers=1, resume=file, only=["robots"], robot="lola", steps=2),
        study.run_study(workers=1, resume=file, only=["stops"], robot="lola", walk="0.5", phases=1),
    ]
    for first, second in zip(made, again, strict=True):
        assert [str(p.rows) for p in first.parts[:-1]] == [str(p.rows) for p in second.parts[:-1]]
    assert made[0].data["walks"][0]["steps"] >= 2
    stop = made[1].data["stops"][0]
    assert not stop["fell"] and stop["steps"] <= 2 and 0.5 < stop["seconds"] < 3.0


@pytest.mark.nightly
def test_a_robot_walks_of_which_only_a_urdf_is_there(tmp_path):
    """Nothing is written beside it, and what is kept names it as it was given."""
    (tmp_path / "its").mkdir()
    urdf, file = tmp_path / "its" / "stranger.urdf", tmp_path / "kept.jsonl"
    urdf.write_text(load_robot("wabian2").urdf)
    (walk,) = study.run_study(workers=1, resume=file, robot=str(urdf), steps=2).data["walks"]
    assert walk["fell"] == "" and walk["steps"] >= 2 and walk["robot"] == str(urdf)
    assert [p.name for p in urdf.parent.iterdir()] == ["stranger.urdf"]
    assert str(urdf) in file.read_text()
    rows = study.Choice(robot=str(urdf), ground="plane:slope=3").rows()
    assert [(r.robot, r.known) for r in rows] == [(str(urdf), True), (str(urdf), False)]


def test_robots_that_cannot_walk_are_refused_in_one_line(tmp_path):
    arms = tmp_path / "arms.urdf"
    arms.write_text(load_robot("armar3").urdf)
    with pytest.raises(RobotError, match="walking needs a floating base and two feet") as told:
        study.run_study(robot=str(arms))
    assert "\n" not in str(told.value)
    with pytest.raises(ConfigError, match="has its own walk"):
        study.Choice(robot=str(arms), only=["speed"])
    with pytest.raises(UnknownNameError, match="did you mean lola"):
        study.Choice(robot="lolla")


def test_what_was_believed_is_told_beside_the_truth():
    outcome = WalkOutcome(
        distance=100.0, odometry=0.004, heading_drift=np.radians(0.5), velocity_error=0.01, inside=0.98
    )
    table = study._belief_table("long", [(LONG_ROWS[0], outcome)])
    line = dict(zip(table.columns, table.rows[0], strict=True))
    assert (line["odometry %"], line["heading deg"], line["velocity mm/s"], line["inside %"]) == (0.4, 0.5, 10.0, 98.0)


def test_programs_and_pushes_of_long_walks():
    program = stop_and_go((0.5, 0.0, 0.0))
    assert [bool(np.any(program(t))) for t in (1.9, 2.1, 3.9, 4.1, 6.9, 7.1)] == [False, True, True, False, False, True]
    pushes = random_pushes(10.0, 60.0, 0)
    assert len(pushes) == 29 and pushes == random_pushes(10.0, 60.0, 0) != random_pushes(10.0, 60.0, 1)
    assert np.ptp([p.when for p in pushes]) == 56.0
    np.testing.assert_allclose([np.hypot(*p.force[:2]) * p.duration for p in pushes], 10.0)
    assert next(r for r in LONG_ROWS if r.program == STOP_AND_GO).seconds == 1000.0


def test_a_top_speed_is_that_before_the_first_fall_or_slip():
    """Slip counts on slippery ground alone, the slowest seed of a rung does, and nothing after a fall."""

    def outcome(row, fell="", slip=0.0):
        return row, WalkOutcome(fell=fell, steps=40, slip=slip, velocity=np.array([row.velocity[0] - 0.05, 0.0, 0.0]))

    own = [r for r in ARM_SPEED_ROWS if r.arms == "still"]
    holds, slides = ([r for r in own if r.friction == mu] for mu in (0.8, 0.25))
    found = [outcome(r, fell="tilted" if k == 2 else "", slip=9.0) for k, r in enumerate(holds)]
    found += [outcome(r, slip=0.41 if k >= 1 else 0.39) for k, r in enumerate(slides)]
    found += [(holds[1], WalkOutcome(steps=40, velocity=np.array([0.61, 0.0, 0.0])))]
    table = study.arm_speed_table(found)
    assert list(table.rows) == [["still", 0.61, round(slides[0].velocity[0] - 0.05, 2)]]
    assert study.arm_speed_table([outcome(slides[0], slip=1.0)]).rows[0][1] == 0.0
