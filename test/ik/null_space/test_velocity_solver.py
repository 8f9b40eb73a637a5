"""All solvers through their one interface: targets in and out of reach, gains, other places, mirrors, held joints."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.ik import DofSelection, FrameTask, JointTask, PointTask, WholeBodyIk
from humanoid_control.ik.null_space import (
    BoundedNorm,
    ComfortCost,
    DampedLeastSquares,
    DampingSchedule,
    Hierarchy,
    JacobianTranspose,
    ResolvedAcceleration,
    ResolvedRate,
    SelfCollisionCost,
    SolverSettings,
    TruncatedSvd,
)
from humanoid_control.ik.position import LevenbergMarquardt, NewtonRaphson
from humanoid_control.ik.tasks import prepare
from test.ik.null_space.conftest import EXACT, arm_of, biped, made, robot_of

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
    task = PointTask(robot, "l_wrist", gain=5.0, name="hand")
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
    (lambda r: DampingSchedule(0.0), "max_damping > 0"),
    (lambda r: TruncatedSvd(r, epsilon=0), "epsilon must be positive"),
    (lambda r: BoundedNorm(r, max_norm=0), "the bound must be positive"),
    (lambda r: Hierarchy(r, epsilon=-1), "epsilon must be positive"),
    (lambda r: DofSelection(r, weights={"waist_rotation": 0}), "must be positive"),
    (lambda r: DofSelection(r, ["waist_rotatoin"]), "did you mean waist_rotation"),
]


@pytest.mark.parametrize(("make", "words"), MISTAKES, ids=[m[1] for m in MISTAKES])
def test_a_mistake_is_one_clear_line(make, words):
    with pytest.raises(HumanoidError, match=words) as caught:
        make(robot_of("hrp2", "fixed"))
    assert "\n" not in str(caught.value)


UNBOUNDED = SolverSettings(max_gain=np.inf, clamp=False, keep_range=False)


def follow(solver, robot, task, q, dt, seconds, gain):
    """Track a circle of the left wrist with feed-forward velocity; errors [m] over time."""
    task.gain = gain
    prepare(robot, solver.data, q)
    start, errors = task.value(robot, solver.data, q), []
    for k in range(round(seconds / dt)):
        w, t = 4.0, k * dt
        circle = 0.06 * np.array([np.sin(w * t), 1 - np.cos(w * t), 0.0])
        task.target = start + circle
        task.velocity = 0.06 * w * np.array([np.cos(w * t), np.sin(w * t), 0.0])
        prepare(robot, solver.data, q)
        errors.append(np.linalg.norm(task.error(robot, solver.data, q)))
        q = solver.step(q, [task], dt)[0]
    return np.array(errors)


@pytest.mark.parametrize("cls", [ResolvedRate, TruncatedSvd, Hierarchy], ids=lambda c: c.__name__)
def test_without_feedback_the_error_grows_without_bound_and_with_it_stays(cls):
    """T-05: ten rounds of a circle, integrated by Euler's method."""
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    drifting = follow(cls(robot, settings=UNBOUNDED), robot, task, q, 0.01, 15, 0.0)
    held = follow(cls(robot, settings=UNBOUNDED), robot, task, q, 0.01, 15, 30.0)
    thirds = [drifting[k : k + 500].max() for k in (0, 500, 1000)]
    assert thirds[0] < thirds[1] < thirds[2] and thirds[2] > 1.4 * thirds[0]
    assert held[100:].max() < 0.1 * thirds[0] and held[1000:].max() < 1.05 * held[100:600].max()


@pytest.mark.parametrize(("share", "stable", "overshoots"), [(0.5, True, False), (1.0, True, False), (1.9, True, True)])
def test_error_dies_away_by_one_minus_gain_times_dt(share, stable, overshoots):
    errors = gain_run(share, SolverSettings(max_gain=np.inf))
    told = np.abs(errors[:-1]) > 1e-9
    ratio = errors[1:][told] / errors[:-1][told]
    assert np.allclose(ratio, 1 - share, atol=0.03)
    assert (ratio[0] < -0.05) == overshoots and (abs(errors[-1]) < abs(errors[0])) == stable


def test_gain_above_twice_the_bound_destabilises_unless_it_is_held_back():
    """T-06, both sides of K = 2/dt, and the bound that solvers keep by themselves."""
    assert np.abs(gain_run(1.95, SolverSettings(max_gain=np.inf, clamp=False), 60))[-1] < 0.1 * 1e-3
    grown = np.abs(gain_run(2.1, SolverSettings(max_gain=np.inf, clamp=False), 60))
    assert grown[-1] > 20 * grown[0]
    held = np.abs(gain_run(2.1, SolverSettings(), 60))
    assert held[-1] < 1e-9, "max_gain holds the gain to 1/dt"


def gain_run(share, settings, steps=12):
    """Signed error of a hand 1 mm off its target, along the offset, for a gain of share / dt."""
    robot, dt = robot_of("hrp2", "fixed"), 0.01
    task, q = arm_of(robot)
    solver = ResolvedRate(robot, settings=settings)
    prepare(robot, solver.data, q)
    offset = np.array([6e-4, 8e-4, 0.0])
    task.target, task.gain, errors = task.value(robot, solver.data, q) + offset, share / dt, []
    for _ in range(steps):
        prepare(robot, solver.data, q)
        errors.append(task.error(robot, solver.data, q) @ offset / 1e-3)
        q = solver.step(q, [task], dt)[0]
    return np.array(errors)


def test_null_space_motion_gives_way_before_the_task_does():
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    task.target = robot.frame_positions(q, [robot.point_frame("l_wrist")])[0] + [0.02, 0, 0]
    eager = ResolvedRate(robot, [ComfortCost(robot.postures["zero"] + 1.0, 80.0)])
    v, report = eager.velocity(q, [task], 0.01)
    prepare(robot, robot.data, q)
    J, wanted = task.rows(robot, robot.data, q)
    assert report.null_scale < 1 and report.speed_scale == 1 and np.allclose(J @ v, wanted)
    assert np.abs(v / robot.velocity).max() == pytest.approx(1)
    task.target = task.target + [0.5, 0.3, 0]
    v, report = eager.velocity(q, [task], 0.01)
    J, wanted = task.rows(robot, robot.data, q)
    assert report.speed_scale < 1 and np.allclose(J @ v, report.speed_scale * wanted, atol=1e-9), "slower, same way"


def test_transposed_jacobian_never_raises_the_error_and_follows_worse():
    """Lyapunov's argument of 2.6, and the price: beside the resolved rate it lags behind a moving target."""
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    task.target, task.gain, solver = np.array([0.3, 0.35, 1.1]), 20.0, JacobianTranspose(robot)
    errors = []
    for _ in range(400):
        q = solver.step(q, [task], 0.01)[0]
        prepare(robot, robot.data, q)
        errors.append(np.linalg.norm(task.error(robot, robot.data, q)))
    assert np.all(np.diff(errors) <= 1e-12)
    task, q = arm_of(robot)
    lag = {c: follow(c(robot), robot, task, q, 0.01, 4, 30.0)[100:].max() for c in (JacobianTranspose, ResolvedRate)}
    assert lag[JacobianTranspose] > 10 * lag[ResolvedRate]


def test_damping_threshold_from_typical_postures_acts_only_near_singularities():
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    dofs = DofSelection(robot, [n for n in robot.joint_names if not n.startswith(("l_shoulder", "l_elbow"))])
    schedule = DampingSchedule.typical(robot, [task], dofs)
    solver = DampedLeastSquares(robot, dofs=dofs, schedule=schedule)
    task.target = np.array([0.3, 0.3, 1.0])
    assert solver.velocity(q, [task], 0.01)[1].damping == 0
    report = solver.velocity(robot.q("zero"), [task], 0.01)[1]
    assert report.damping > 0 and report.manipulability < schedule.threshold


@pytest.mark.parametrize(
    "cls", [*EXACT, JacobianTranspose, LevenbergMarquardt, NewtonRaphson], ids=lambda c: c.__name__
)
def test_joint_commands_do_not_depend_on_where_the_robot_stands(cls):
    """A kilometre away and turned, targets moved along: the same joint velocities."""
    robot, tasks, dofs = biped()
    rng = np.random.default_rng(3)
    X = pin.SE3(pin.rpy.rpyToMatrix(0, 0, 2.1), np.array([1000.0, -600.0, 0.0]))
    offset, out = 0.02 * rng.normal(size=(12, 3)), []
    hand = FrameTask(robot, "l_forearm", gain=8.0, name="hand")
    for place in (pin.SE3.Identity(), X):
        q = robot.q()
        q[:7] = pin.SE3ToXYZQUAT(place * pin.XYZQUATToSE3(q[:7]))
        tasks.take_targets(q)
        for k, task in enumerate(tasks.tasks.values()):
            if isinstance(task, PointTask):
                task.target = task.target + (offset[k] if task.axes is not None else place.rotation @ offset[k])
        prepare(robot, robot.data, q)
        X_hand = robot.data.oMf[hand.frame]
        move = place.rotation @ np.array([0.03, 0.02, 0.05])
        hand.X_target = pin.SE3(X_hand.rotation, X_hand.translation + move)
        solver = made(cls, robot, dofs)
        v = [solver.step(q, tasks.without("left_arm", "r_toe_flexion"), 0.01)[1] for _ in range(2)][-1]
        w = made(cls, robot, dofs).step(q, [hand], 0.01)[1]
        out.append((v, w))
    for there, here in zip(out[1], out[0], strict=True):
        assert np.abs(here).max() > 0.01 and np.allclose(there, here, atol=2e-6)


@pytest.mark.parametrize("cls", [*EXACT, LevenbergMarquardt], ids=lambda c: c.__name__)
def test_mirrored_tasks_give_the_mirrored_command(cls):
    robot = robot_of("suralp", "fixed")
    names = robot.joint_names
    swap = {"l_": "r_", "r_": "l_"}
    twin = [robot.index[swap[n[:2]] + n[2:]] if n[:2] in swap else k for k, n in enumerate(names)]
    sign = np.array([1.0 if n[:2] in swap or n == "neck_flexion" else -1.0 for n in names])
    rng, flip, out = np.random.default_rng(8), np.array([1.0, -1.0, 1.0]), []
    offset = {"l": rng.normal(size=3) * 0.05, "r": rng.normal(size=3) * 0.05}
    for mirrored in (False, True):
        tasks = [PointTask(robot, f"{s}_wrist", gain=10.0, name=s) for s in "lr"]
        q = robot.q(robot.from_mapping({"l_elbow_flexion": 1.0, "r_elbow_flexion": 1.0}))
        for task, side in zip(tasks, "lr", strict=True):
            home = robot.frame_positions(q, [robot.point_frame(f"{side}_wrist")])[0]
            task.target = home + (offset["r" if side == "l" else "l"] * flip if mirrored else offset[side])
        objectives = [SelfCollisionCost(robot, 0.06, 2.0), ComfortCost(robot.postures["neutral"], 0.5)]
        solver = made(cls, robot, None, objectives=objectives)
        for _ in range(5):
            q = solver.step(q, tasks, 0.005)[0]
        out.append(q)
    assert np.abs(out[0] - out[1]).max() > 1e-3
    assert np.allclose((sign * out[0])[twin], out[1], atol=1e-8)


def test_a_heavy_joint_moves_less_and_a_held_one_not_at_all():
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    task.target = np.array([0.3, 0.3, 1.0])
    speeds = []
    for weight in (1.0, 100.0):
        v = ResolvedRate(robot, dofs=DofSelection(robot, weights={"waist_rotation": weight})).velocity(q, [task], 0.01)[
            0
        ]
        speeds.append(abs(v[robot.joint_index("waist_rotation")]))
    assert speeds[1] < 0.05 * speeds[0]
    held = ResolvedRate(robot, dofs=DofSelection(robot, ["waist_rotation"])).velocity(q, [task], 0.01)[0]
    assert held[robot.joint_index("waist_rotation")] == 0 and np.abs(held).max() > 0.01


def test_mimicking_joints_count_with_their_leader():
    """Lola's cameras: the right one follows the left one; a gaze by the follower must move the leader."""
    robot = robot_of("lola", "fixed")
    follower, leader, multiplier, _ = robot.mimic[0]
    dofs = DofSelection(robot)
    assert dofs.k == robot.nv - 1
    task = JointTask(robot, [robot.joint_names[follower]], gain=10.0, name="camera")
    task.target = np.array([0.2])
    q = robot.q()
    solver = ResolvedRate(robot)
    for _ in range(200):
        q, v, _ = solver.step(q, [task], 0.01)
        assert v[follower] == pytest.approx(multiplier * v[leader])
    assert robot.joints(q)[leader] * multiplier == pytest.approx(0.2, abs=1e-9)
    assert robot.joints(q)[follower] == pytest.approx(0.2, abs=1e-9)
