"""All solvers through their one interface: targets in reach, out of reach, singular, and none at all."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.ik import DofSelection, FramePoint, PointTask, WholeBodyIk
from humanoid_control.ik.null_space import (
    BoundedNorm,
    DampedLeastSquares,
    DampingSchedule,
    Hierarchy,
    JacobianTranspose,
    ResolvedAcceleration,
    SolverSettings,
    TruncatedSvd,
)
from humanoid_control.ik.position import LevenbergMarquardt, NewtonRaphson
from humanoid_control.ik.tasks import prepare
from test.ik.solver_cases import EXACT, arm_of, biped, made, robot_of

DIFFERENTIAL = [*EXACT, JacobianTranspose]


ALL = [*DIFFERENTIAL, NewtonRaphson, LevenbergMarquardt]


def worst(robot, data, q, tasks):
    prepare(robot, data, q)
    return max(np.abs(t.error(robot, data, q)).max(initial=0) for t in tasks)


@pytest.mark.parametrize("cls", [*ALL, WholeBodyIk], ids=lambda c: c.__name__)
def test_reaches_a_whole_body_target_through_the_one_interface(cls):
    """28 rows of a posture near by: every method arrives, keeps speed limits and ranges, and a unit quaternion."""
    robot, tasks, dofs = biped()
    rng = np.random.default_rng(1)
    free = np.array([n not in tasks.held for n in robot.joint_names])
    goal = robot.postures["neutral"] + 0.08 * rng.normal(size=robot.n).clip(-1.5, 1.5) * free
    tasks.take_targets(robot.q(np.clip(goal, robot.lower, robot.upper)))
    solver, q, dt = made(cls, robot, dofs), robot.q(), 0.01
    for _ in range(4000 if cls is JacobianTranspose else 300):
        before, (q, v, report) = q, solver.step(q, tasks.all(), dt)
        assert np.abs(v[robot.iv :] / robot.velocity).max() <= 1 + 1e-9
        assert np.abs(np.linalg.norm(q[3:7]) - 1) < 1e-12
        assert (robot.joints(q) >= robot.lower).all() and (robot.joints(q) <= robot.upper).all()
        if cls is not ResolvedAcceleration:
            assert np.allclose(q, pin.integrate(robot.model, before, v * dt), atol=0.02)
    assert report.ok
    assert worst(robot, solver.data, q, tasks.all()) < (5e-3 if cls is JacobianTranspose else 1e-5)
    assert np.allclose(robot.joints(q)[~free], robot.postures["neutral"][~free]), "held joints do not move"


@pytest.mark.parametrize("cls", ALL, ids=lambda c: c.__name__)
def test_a_target_out_of_reach_is_approached_and_nothing_runs_away(cls):
    """A metre beyond the arm: no NaN, speeds and ranges kept, and damped methods stand still at the nearest point."""
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    held = [n for n in robot.joint_names if not n.startswith(("l_shoulder", "l_elbow"))]
    shoulder = robot.frame_positions(q, [robot.point_frame("l_gh")])[0]
    wrist = robot.frame_positions(q, [robot.point_frame("l_wrist")])[0]
    lengths = robot.segment_lengths()
    reach = lengths["upper_arm"] + lengths["lower_arm"]
    away = np.array([0.6, 0.5, -0.6]) / np.linalg.norm([0.6, 0.5, -0.6])
    task.target, task.gain = shoulder + (reach + 1.0) * away, 10.0
    solver = made(cls, robot, DofSelection(robot, held))
    before = np.linalg.norm(wrist - task.target)
    speeds = []
    for _ in range({JacobianTranspose: 1500, NewtonRaphson: 200}.get(cls, 500)):
        q, v, _ = solver.step(q, [task], 0.01)
        assert np.isfinite(q).all() and (np.abs(v[robot.iv :]) <= robot.velocity * (1 + 1e-9)).all()
        speeds.append(np.abs(v).max())
    left = np.linalg.norm(robot.frame_positions(q, [robot.point_frame("l_wrist")])[0] - task.target)
    if cls in (DampedLeastSquares, JacobianTranspose, LevenbergMarquardt):
        assert left == pytest.approx(1.0, abs=0.01), "the arm is stretched towards it"
        assert np.max(speeds[-50:]) < 0.05
    elif cls is not NewtonRaphson:  # it has no root to find, and wanders; that is what the others are for
        assert left < before


@pytest.mark.parametrize("cls", DIFFERENTIAL, ids=lambda c: c.__name__)
@pytest.mark.parametrize("bend", [0.0, 0.05])
def test_a_stretched_arm_asked_to_come_in_moves_at_bounded_speed_and_arrives(cls, bend):
    """At the singularity itself the exact inverse has no bounded answer, and the transpose none at all."""
    robot = robot_of("wabian2", "fixed")
    q = robot.q(robot.from_mapping({"l_elbow_flexion": bend}))
    task = PointTask("hand", FramePoint(robot, robot.point_frame("l_wrist")), gain=5.0)
    held = [n for n in robot.joint_names if not n.startswith(("l_shoulder", "l_elbow"))]
    shoulder, wrist = robot.frame_positions(q, [robot.point_frame("l_gh"), robot.point_frame("l_wrist")])
    task.target = wrist + 0.3 * (shoulder - wrist) + [0.02, 0.0, 0.0]
    solver = made(cls, robot, DofSelection(robot, held))
    for _ in range(600):
        q, v, _ = solver.step(q, [task], 0.01)
        assert np.isfinite(q).all() and (np.abs(v[robot.iv :]) <= robot.velocity * (1 + 1e-9)).all()
    prepare(robot, robot.data, q)
    # Straight, two of them see no way to go; the transpose is slow besides.
    if cls is not JacobianTranspose and (bend > 0 or cls is not TruncatedSvd):
        assert np.linalg.norm(task.error(robot, robot.data, q)) < 0.02


@pytest.mark.parametrize("cls", DIFFERENTIAL, ids=lambda c: c.__name__)
def test_targets_that_are_not_numbers_stop_the_robot_and_are_reported(cls):
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    solver = cls(robot)
    for _ in range(5):
        q = solver.step(q, [task], 0.01)[0]
    task.target = np.array([np.nan, 0.0, 0.0])
    q_next, v, report = solver.step(q, [task], 0.01)
    assert not report.ok and "not a number" in report.note
    if cls is ResolvedAcceleration:  # it brings the joints to rest within the tick
        assert np.allclose(v, 0, atol=1e-9) and np.isfinite(q_next).all()
    else:
        assert np.array_equal(q_next, q) and np.all(v == 0)


MISTAKES = [
    (lambda r: SolverSettings(null_gain=-1), "null_gain >= 0"),
    (lambda r: SolverSettings(max_gain=0), "max_gain > 0"),
    (lambda r: DampingSchedule(0.0), "most > 0"),
    (lambda r: TruncatedSvd(r, epsilon=0), "epsilon must be positive"),
    (lambda r: BoundedNorm(r, most=0), "the bound must be positive"),
    (lambda r: Hierarchy(r, epsilon=-1), "epsilon must be positive"),
    (lambda r: DofSelection(r, weights={"waist_rotation": 0}), "must be positive"),
    (lambda r: DofSelection(r, ["waist_rotatoin"]), "did you mean waist_rotation"),
]


@pytest.mark.parametrize(("make", "words"), MISTAKES, ids=[m[1] for m in MISTAKES])
def test_a_mistake_is_one_clear_line(make, words):
    with pytest.raises(HumanoidError, match=words) as caught:
        make(robot_of("hrp2", "fixed"))
    assert "\n" not in str(caught.value)
