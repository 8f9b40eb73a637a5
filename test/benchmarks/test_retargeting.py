"""The bench of retargeting: everybody is judged on the same frames, by a measure that is checked."""

import numpy as np
import pytest

from evidence.benchmarks import retargeting as bench
from evidence.benchmarks.page import METHODS, SECTIONS
from evidence.benchmarks.peers import mink_stepper, pink_stepper
from evidence.benchmarks.placo_peer import PlacoRetargeting
from evidence.benchmarks.retargeting import quality
from humanoid_control.errors import ConfigError
from humanoid_control.mocap import load_body_points
from humanoid_control.paths import TEST_DATA
from humanoid_control.retargeting import Retargeter, RetargetSettings, retarget_clip, scale_to_robot
from humanoid_control.robots import load_robot
from test.benchmarks.test_ik import need


def short_rows(**options):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("FRAMES", 40), ("ROUNDS", 1), ("FIVE", ("wabian2",))):
            patch.setattr(bench, name, value)
        return {r["name"]: r for r in bench.measure(robot="wabian2", **options)}


@pytest.fixture(scope="module")
def rows():
    return short_rows(motion="dance")


@pytest.mark.nightly
def test_every_method_has_the_same_frames(rows):
    single = [r for name, r in rows.items() if name.startswith("wabian2_") and "batch" not in name]
    assert len(single) >= 2 and {r["n"] for r in single} == {39}
    assert all(set(bench.COLUMNS) <= set(r) for r in rows.values())
    text = SECTIONS["retarget"](rows)
    assert all(METHODS[n.removeprefix("wabian2_")] in text for n in rows if n.startswith("wabian2_"))


def test_a_recorded_dance_has_rows_of_its_own_where_it_is(mocap, monkeypatch, capsys):
    clip = mocap("cmu_bvh/05_02.bvh")
    monkeypatch.setenv(TEST_DATA, str(clip.parent.parent.parent))
    rows = short_rows()
    real = {n: r for n, r in rows.items() if r["clip"] == "05_02"}
    others = {n for n, r in rows.items() if r["clip"] == "dance" and n != "five_robots_s"}
    assert {n.replace("_05_02", "") for n in real} == others and len(others) >= 4
    assert {r["n"] for n, r in real.items() if "batch" not in n} == {39}, "all on the same frames"
    assert not any("no rows of" in line.lower() for line in bench.notes(list(rows.values())))
    assert "`wabian2_05_02`, clip '05_02'" in SECTIONS["retarget"](rows)


def test_without_the_recorded_dance_its_rows_are_left_out_and_it_is_said(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv(TEST_DATA, str(tmp_path))
    rows = short_rows()
    assert {r["clip"] for r in rows.values()} == {"dance"}
    assert bench.REAL in capsys.readouterr().err
    assert f"set {TEST_DATA}" in bench.notes(list(rows.values()))[0]


def test_single_frames_and_the_whole_clip_give_the_same_trajectory(rows):
    one, whole = rows["wabian2_ours_3_steps"], rows["wabian2_batch_3_steps"]
    assert all(one[c] == pytest.approx(whole[c], abs=2e-3) for c in bench.COLUMNS[5:])


def test_quality_is_what_its_names_say():
    robot = load_robot("we4rii", "fixed")
    targets = scale_to_robot(load_body_points("dance"), robot)
    targets = bench.replace(targets, positions=targets.positions[:60], body=targets.body[:60], forearms=None)
    trajectory = retarget_clip(targets, robot, RetargetSettings(avoidance="none"))
    told = quality(robot, targets, trajectory.positions)
    assert told["error_cm"] == pytest.approx(100 * trajectory.errors.mean(), abs=1e-3)
    q = trajectory.positions
    a = (q[2:] - 2 * q[1:-1] + q[:-2])[:, robot.imitation_joints] * targets.rate**2
    first = (q[1] - q[0])[robot.imitation_joints] * targets.rate**2
    assert told["peak_rad_s2"] == pytest.approx(max(np.abs(a).max(), 0), rel=1e-3)
    assert np.abs(first).max() <= 1e9  # what is judged begins with the first step, whose start is at rest
    jump = q.copy()
    jump[30:, robot.imitation_joints[0]] += 0.1
    assert quality(robot, targets, jump)["peak_rad_s2"] > 0.09 * targets.rate**2
    inside = np.tile(robot.postures["neutral"], (60, 1))
    for name, angle in (("l_shoulder_abduction", -0.6), ("r_shoulder_abduction", -0.6)):
        joint = robot.joint_for(name)
        if joint is not None:
            inside[:, robot.joint_index(joint)] = angle
    told = quality(robot, targets, inside)
    exact = robot.collision_monitor("shapes").update(robot.q(inside[0]), np.inf).distance.min()
    assert told["closest_mm"] == pytest.approx(1000 * exact, abs=1e-3)
    assert told["touching_percent"] == (100.0 if exact < 0 else 0.0)


@pytest.mark.parametrize("peer", ["placo", "mink", "pink"])
def test_a_peer_reaches_targets_that_stand_still(peer):
    """So it is given the same robot, points and targets: those of a posture, from another one."""
    need(peer)
    robot = load_robot("wabian2", "fixed")
    goal, start = robot.postures["neutral"].copy(), robot.postures["neutral"].copy()
    middle = 0.5 * (robot.lower + robot.upper)[robot.imitation_joints]
    goal[robot.imitation_joints] += 0.2 * np.clip(middle - goal[robot.imitation_joints], -1, 1)
    judge = Retargeter(robot)
    points, _ = judge.points(goal[robot.imitation_joints])
    targets, dt = np.tile(points, (200, 1, 1)), 1 / 50
    if peer == "placo":
        process = PlacoRetargeting(robot, targets, dt, start)
        _, joints = process.steps("all_pairs", range(1, 200))
        process.close()
        assert process.failed["all_pairs"] == 0
    else:
        step = {"mink": mink_stepper, "pink": pink_stepper}[peer](robot, start)
        joints = np.array([step(p, dt) for p in targets[1:]])
    reached, _ = judge.points(joints[-1][robot.imitation_joints])
    before, _ = judge.points(start[robot.imitation_joints])
    far = np.linalg.norm(before - points, axis=1).mean()
    assert np.linalg.norm(reached - points, axis=1).mean() < 0.1 * far
    assert np.all(joints >= robot.lower - 1e-6) and np.all(joints <= robot.upper + 1e-6)


def test_no_robot_is_refused():
    with pytest.raises(ConfigError, match="name of a robot"):
        bench.measure(robot=",")
