"""A dancer's steps as footsteps (12 s on one core, of which 10 s are a dance in the simulated world)."""

import json
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies.walking.dance_study import dance
from humanoid_control.errors import ClipError, ConfigError, UnknownNameError
from humanoid_control.mocap import load_body_points
from humanoid_control.mocap.dance import BEATS, STEPS
from humanoid_control.mocap.formats.c3d import decode_c3d
from humanoid_control.retargeting import scale_to_robot
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.walking import StepLimits, StepTimes, Walker
from humanoid_control.walking.dancing.dance_steps import (
    DanceLimits,
    DancerStep,
    choreography,
    contacts,
    dancer_steps,
    leg_length_of,
)
from humanoid_control.walking.dancing.routine import balance_clock, routine
from humanoid_control.walking.dancing.upper_body import UpperBody

LIMITS, TIMES = StepLimits(), StepTimes()
SOLES = [pin.SE3(np.eye(3), np.array([0.0, y, 0.0])) for y in (0.1, -0.1)]


@pytest.fixture(scope="module")
def dancer():
    return load_body_points("dance")


def step(foot, lift, land, place=(0.0, 0.0), turn=0.0):
    return DancerStep(foot, lift, land, np.array(place), turn)


def test_labelled_strikes_and_lift_offs_are_found_within_30_ms(mocap):
    """Events of a Plug-in-Gait clip; those beside its first and last frame have no frame before or after."""
    file = mocap("vicon_c3d/PiG_Motion-FlatFoot-One.c3d")
    content = decode_c3d(file.read_bytes(), "")
    begin = (content.parameters["TRIAL:ACTUAL_START_FIELD"][0] - 1) / content.rate
    at = content.parameters["EVENT:TIMES"].ravel()[1::2] - begin
    body = load_body_points(file)
    on = contacts(body)
    names, sides = content.texts("EVENT:LABELS"), content.texts("EVENT:CONTEXTS")
    looked = 0
    for t, name, side in zip(at, names, sides, strict=True):
        if not 0.1 < t < body.duration - 0.1:
            continue
        change = np.diff(on[:, 0 if side == "Left" else 1].astype(int))
        found = (np.flatnonzero(change == (1 if name == "Foot Strike" else -1)) + 1) / body.rate
        assert np.abs(found - t).min() <= 0.0301, (name, side, t)
        looked += 1
    assert looked == 6


def test_the_steps_of_the_built_in_dance_are_those_of_its_score(dancer):
    found = dancer_steps(dancer)
    assert [s.foot for s in found] == ["lr".index(side) for side, _, _ in STEPS]
    beat = dancer.duration / BEATS
    for s, (_, start, _) in zip(found, STEPS, strict=True):
        assert start * beat - 0.02 < s.lift < start * beat + 0.2 and s.land < (start + 1) * beat + 0.02
        assert np.linalg.norm(s.place) < 0.01 and abs(s.turn) < 0.02


def test_a_dancer_without_feet_has_no_steps(dancer):
    keep = [k for k, n in enumerate(dancer.names) if n.split("_")[-1] not in ("ankle", "toe", "heel")]
    bare = replace(
        dancer,
        names=tuple(dancer.names[k] for k in keep),
        positions=dancer.positions[:, keep].copy(),
        missing=dancer.missing[keep].copy(),
    )
    with pytest.raises(ClipError, match="feet"):
        dancer_steps(bare)
    assert leg_length_of(bare) == 0.0


def test_steps_are_scaled_about_the_foot_that_stands_and_keep_their_beat():
    found = [step(0, 1.0, 1.5, (0.2, 0.05), 0.1), step(1, 1.8, 2.3), step(0, 4.0, 4.5, (-0.1, 0.0))]
    made = choreography(found, SOLES, LIMITS, TIMES, 0.5)
    assert made.told == [] and made.lifts == pytest.approx([0.0, 0.8, 3.0])
    assert made.steps[0].X.translation[:2] == pytest.approx([0.1, 0.1 + 0.025])
    second = made.steps[0].X.actInv(made.steps[1].X)
    assert second.translation[:2] == pytest.approx([0.0, -0.2])
    assert made.clock[1][:2] == pytest.approx([1.0, 1.5]) and (np.diff(made.clock[0]) > 0).all()
    at = [*SOLES]
    for s in made.steps:
        assert LIMITS.refusal(s, at[1 - s.foot], at[s.foot]) == ""
        at[s.foot] = s.X


def test_what_legs_cannot_do_is_done_as_far_as_they_can_and_said():
    found = [step(0, 0.0, 0.2, (1.5, 0.0)), step(1, 0.3, 0.5), step(1, 0.6, 0.8), step(0, 0.7, 4.0)]
    made = choreography(found, SOLES, LIMITS, TIMES, 1.0)
    text = " ".join(made.told)
    for word in ("shorter", "longer", "just stepped", "in the air", "on one foot"):
        assert word in text, (word, text)
    assert made.steps[0].limited and 0.05 < made.steps[0].X.translation[0] < LIMITS.forward + 0.01
    assert all(b.foot != a.foot for a, b in zip(made.steps, made.steps[1:], strict=False))
    assert made.steps[-1].swing == DanceLimits().longest
    held = choreography(found[-1:], SOLES, LIMITS, TIMES, 1.0, DanceLimits(hold=5.0))
    assert held.steps[0].swing == pytest.approx(3.3) and held.told == []


def test_a_clip_that_asks_for_too_much_sway_is_slowed_where_it_does():
    robot = load_robot("hrp2", "floating")
    targets = scale_to_robot(load_body_points("dance"), load_robot("hrp2", "fixed"))
    walker, upper = Walker(robot), UpperBody(robot)
    rows, rate = upper.rows(targets.positions[250:500]), targets.rate
    t, s = balance_clock(robot, walker.feet, 0.8, upper, rows, rate)
    assert t[-1] == pytest.approx(s[-1])
    t, s = balance_clock(robot, walker.feet, 0.8, upper, rows, 3 * rate, room=0.1)
    pace = np.diff(s) / np.diff(t)
    assert pace.min() < 0.9 and pace.max() <= 1.0 + 1e-9 and t[-1] > s[-1]


@pytest.mark.nightly
def test_a_robot_dances_the_steps_too(dancer):
    """The first steps, on the spot, while the arms dance."""
    frames = int(4.2 * dancer.rate)
    body = replace(dancer, positions=dancer.positions[:frames].copy())
    robot = load_robot("hrp2", "floating")
    targets = scale_to_robot(body, load_robot("hrp2", "fixed"))
    walker = Walker(robot)
    plan = routine(walker, targets.positions, targets.rate, body, begin=1.0)
    o = dance(SimulationConfig("hrp2", "floating").build(), walker, plan, seed=1)
    assert o.fell == "" and plan.found >= 3
    assert o.taken == plan.found and o.place_error.max() < 0.025
    assert o.beat_error.max() < 0.1


def test_a_turn_is_given_up_before_a_place_and_feet_that_cross_stand_beside_each_other():
    made = choreography([step(0, 0.0, 0.5, (0.1, 0.0), 2.0)], SOLES, LIMITS, TIMES, 1.0)
    X = made.steps[0].X
    assert X.translation[0] - SOLES[1].translation[0] == pytest.approx(0.1) and 0.05 < pin.log3(X.rotation)[2] < 0.35
    assert made.steps[0].limited
    crossed = choreography([step(0, 0.0, 0.5, (0.0, -0.4))], SOLES, LIMITS, TIMES, 1.0)
    assert LIMITS.gap <= crossed.steps[0].X.translation[1] + 0.1 < LIMITS.gap + 0.02


def test_a_study_keeps_what_was_danced_and_says_what_cannot_be(tmp_path):
    from evidence.studies.walking import dance_study

    file = tmp_path / "kept.jsonl"
    outcome = {"robot": "lola", "clip": "dance", "way": "standing", "seed": 0, "told": [], "refused": "nothing"}
    key = '["lola", "dance", "standing", 0, 5.0]'
    file.write_text(json.dumps({"job": key, "outcome": outcome}) + "\n")
    report = dance_study.run_study("lola", seconds=5.0, only=["standing"], workers=1, resume=file)
    assert report.data["dances"] == [outcome]
    assert "rejected: nothing" in report.parts[0].rows[0]
    row = dance_study.try_dance(("lola", "no such clip", "steps", 0, 5.0))
    assert row["refused"]
    file.write_text("nothing")
    with pytest.raises(ConfigError, match="contains no results"):
        dance_study.run_study("lola", seconds=5.0, only=["standing"], resume=file)
    with pytest.raises(UnknownNameError, match="way to dance"):
        dance_study.run_study(only=["flying"])
