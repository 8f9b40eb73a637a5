"""Costs of limits: where one limit is known to be in the way it is named, and what is advised helps when it is done."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evidence.studies.dube2012.hypotheses import OPENED
from evidence.studies.dube2012.robot_variants import with_locked, with_ranges
from humanoid_control.cli.demo import DANCER, MOTION, SECONDS
from humanoid_control.evaluation import measure_limit_costs
from humanoid_control.evaluation.limit_costs import LIMITS, REACH, VISIBLE
from humanoid_control.mocap import find_body_points, load_body_points, load_clip
from humanoid_control.retargeting import RetargetSettings, retarget_clip, scale_to_robot
from humanoid_control.robots import load_robot
from humanoid_control.session.demo import DANCE_LEAD_IN

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def body():
    return find_body_points(load_clip("dance").crop(6, 12))


@pytest.fixture(scope="module")
def able():
    """A robot to which this clip is no trouble."""
    return load_robot("recommended", "fixed")


def error(body, robot, speed=1.0):
    return float(retarget_clip(scale_to_robot(body, robot).paced(speed), robot).errors.mean())


def test_nothing_is_blamed_where_everything_goes_well(body, able):
    costs = measure_limit_costs(body, able, 0.5)
    assert costs.kept.mean == pytest.approx(error(body, able, 0.5))
    assert costs.costliest is None and costs.grade == "close" and costs.advice() == []
    assert "no limit has a visible cost" in costs.verdict


def test_shapes_are_said_to_touch_where_they_do(body, able):
    costs = measure_limit_costs(body, able, 0.5)
    for closest, said in ((-0.0173, "shapes touch by 17 mm"), (0.0173, "nothing touches")):
        assert f", {said};" in replace(costs, kept=replace(costs.kept, closest=closest)).verdict


def test_a_short_range_is_blamed_with_its_joint_and_slower_is_not_advised(body, able):
    stiff = with_ranges(able, {"elbow_flexion": (0.0, 10.0)})
    costs = measure_limit_costs(body, stiff, 0.5, others=[able])
    assert costs.costliest == "joint range" and costs.cost("joint range") > 0.02
    assert {j[2:] for j in costs.joints} == {"elbow_flexion"} and "elbow_flexion" in costs.verdict
    assert costs.better_speed is None and costs.better_robot == able.name
    slower, other = costs.advice()
    assert slower.startswith("slower does not help") and f"--robot {able.name}" in other
    assert costs.others[able.name].mean == pytest.approx(error(body, able, 0.5))


def test_a_hurried_clip_is_blamed_on_speed_and_the_advised_pace_helps(body, able):
    slow = load_robot("armar3", "fixed")  # 1 rad/s
    costs = measure_limit_costs(body, slow, 2.0)
    assert costs.costliest == "joint speed" and costs.kept.at_speed_limit > 0.3
    speed = costs.better_speed
    assert speed is not None and f"--speed {speed:g}" in costs.advice()[0]
    assert costs.slower[speed].mean < 0.8 * costs.kept.mean
    assert error(body, slow, speed) == pytest.approx(costs.slower[speed].mean)


def test_forearms_that_should_go_through_the_belly_are_blamed_on_self_collision(body, able):
    positions, share = np.repeat(body.positions[:1], 200, axis=0), np.clip(np.linspace(0, 2, 200), 0, 1)[:, None]
    for side, s in (("l", 1), ("r", -1)):
        shoulder, elbow, wrist = (body.names.index(f"{side}_{point}") for point in ("shoulder", "elbow", "wrist"))
        hanging = positions[0, shoulder] + np.array([0.0, 0.05 * s, -0.28])
        across = hanging + [0.05, -0.25 * s, 0.0]
        positions[:, elbow] += share * (hanging - positions[:, elbow])
        positions[:, wrist] += share * (across - positions[:, wrist])
    costs = measure_limit_costs(replace(body, positions=positions), with_ranges(able, OPENED), 0.5)
    assert costs.costliest == "self-collision"
    assert costs.kept.closest >= 0 > costs.without["self-collision"].closest


def test_joints_that_a_robot_lacks_are_blamed_on_reach(body, able):
    stiff = with_locked(able, ["waist", "girdle"])
    costs = measure_limit_costs(body, stiff, 0.5)
    assert costs.costliest == REACH and "without any limit" in costs.verdict
    assert costs.cost(REACH) == costs.without[REACH].mean > 0.05


def test_only_what_was_played_counts(body, able):
    costs = measure_limit_costs(body, able, 0.5, seconds=4.0)
    whole = retarget_clip(scale_to_robot(body, able).paced(0.5), able)
    assert costs.kept.mean == pytest.approx(whole.errors[:201].mean())
    assert costs.kept.max <= whole.errors.max()


def test_json_and_table_hold_every_trial(body, able):
    costs = measure_limit_costs(body, able, 0.5, others=[load_robot("wabian2", "fixed")])
    out = costs.to_json()
    assert set(out["without"]) == {*LIMITS, REACH} and set(out["slower"]) == {"0.375", "0.25", "0.125"}
    assert len(costs.table().rows) == 1 + len(LIMITS) + 1 + 3 + 1
    assert out["verdict"] == costs.verdict and out["costliest"] is None
    measured = replace(costs.kept, mean=0.0123, max=0.0456, at_speed_limit=0.125, at_range_limit=0.25, closest=-0.0031)
    first = replace(costs, kept=measured).table().rows[0]
    assert first == ["every limit kept", 1.2, 4.6, 12.5, 25.0, -3.1], "in centimetres, percent and millimetres"


def test_settings_that_are_given_are_those_of_every_trial(body, able):
    gentle = RetargetSettings(acceleration=5.0)
    costs = measure_limit_costs(body, able, 1.0, settings=gentle)
    kept = retarget_clip(scale_to_robot(body, able), able, gentle)
    assert costs.kept.mean == pytest.approx(kept.errors.mean()) and costs.kept.mean > 2 * error(body, able)


def test_ranges_without_end_are_really_left(body, able):
    stiff = with_ranges(able, {"elbow_flexion": (0.0, 10.0)})
    targets = scale_to_robot(body, stiff)
    free = retarget_clip(targets, stiff, RetargetSettings(keep_ranges=False)).positions
    k = [stiff.joint_index(f"{s}_elbow_flexion") for s in "lr"]
    assert np.degrees(free[:, k].max()) > 40
    assert np.degrees(retarget_clip(targets, stiff).positions[:, k].max()) <= 10 + 1e-9


def test_the_default_demo_is_one_that_the_robot_can_do():
    make = dict(re.findall(r"^(ROBOT|MOTION|TIME|SPEED) \?= (\S+)$", (REPOSITORY / "Makefile").read_text(), re.M))
    assert make == {"ROBOT": DANCER, "MOTION": MOTION, "TIME": f"{SECONDS:g}", "SPEED": "1"}
    body = load_body_points(MOTION)
    assert DANCE_LEAD_IN + body.duration - 0.5 <= SECONDS <= DANCE_LEAD_IN + body.duration + 1.0, "once through"
    costs = measure_limit_costs(body, load_robot(DANCER, "fixed"))
    assert costs.kept.mean < 0.014 and costs.kept.max < 0.085
    assert costs.kept.at_speed_limit < 0.04 and costs.kept.closest > 0.01
    assert costs.cost("joint range") < VISIBLE and costs.cost("self-collision") < VISIBLE
