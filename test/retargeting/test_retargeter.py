"""Joint trajectories: limits always, weights by finite differences, first frames that are real postures."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ClipError, HumanoidError
from humanoid_control.kinematics.joint_limits import JointLimits, velocity_bounds
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import POINTS, Retargeter, RetargetSettings, retarget_clip, scale_to_robot
from humanoid_control.retargeting.frame_solver import FAR, HELD, FrameBefore, FrameGoal, solve_goal
from humanoid_control.robots import CATALOGUE, Robot, load_robot
from test.robots_under_test import KINDS, by_kind, nightly

REAL = (
    "dance_markers/dance1.trc",
    "vicon_c3d/PiG_Motion-FlatFoot-One.c3d",
    "vicon_c3d/shd01.c3d",
    "cmu_bvh/05_02.bvh",
)


@pytest.fixture(scope="module")
def dance():
    return find_body_points(load_clip("dance"))


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_limits_hold_in_every_frame(name, dance):
    robot = load_robot(name, "fixed")
    t = retarget_clip(scale_to_robot(dance, robot), robot)
    assert (t.positions >= robot.lower).all() and (t.positions <= robot.upper).all()
    assert (np.abs(t.velocities) <= robot.velocity * (1 + 1e-9)).all()
    still = np.setdiff1d(np.arange(robot.n), robot.imitation_joints)
    assert np.ptp(t.positions[:, still], axis=0).max(initial=0) == 0, "only imitation joints move"
    assert np.isfinite(t.errors).all()


@pytest.mark.parametrize("name", ["hrp2", "wabian2"])
def test_legs_stay_also_where_the_robot_file_does_not_say_which_joints_imitate(name, dance):
    robot = load_robot(name, "fixed")
    other = Robot(robot._tree, replace(robot.file, imitation_joints=()), "fixed")
    legs = [k for k, n in enumerate(other.joint_names) if n[1:].startswith(("_hip", "_knee", "_ankle", "_toe"))]
    assert len(legs) >= 12 and set(robot.imitation_joints) <= set(other.imitation_joints)
    t = retarget_clip(scale_to_robot(dance, other), other)
    assert (t.positions[:, legs] == other.postures["neutral"][legs]).all()


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_first_frame_is_a_minimum(name, dance):
    """No small random change of the first posture brings the points nearer."""
    robot = load_robot(name, "fixed")
    solver = Retargeter(robot)
    goal = scale_to_robot(dance, robot).positions[0]
    q = solver.start(goal)
    rng, m = np.random.default_rng(2), robot.imitation_joints
    best = np.sum((solver.points(q[m])[0] - goal) ** 2)
    for _ in range(200):
        other = np.clip(q[m] + 0.05 * rng.normal(size=len(m)), robot.lower[m], robot.upper[m])
        assert np.sum((solver.points(other)[0] - goal) ** 2) > best - 2e-3


def test_jacobian_is_the_finite_difference():
    robot = load_robot("we4rii", "fixed")
    solver, rng, eps = Retargeter(robot), np.random.default_rng(3), 1e-6
    m = robot.imitation_joints
    for _ in range(10):
        q = rng.uniform(robot.lower[m], robot.upper[m])
        d = rng.normal(size=len(m))
        numeric = (solver.points(q + eps * d)[0] - solver.points(q - eps * d)[0]).ravel() / (2 * eps)
        assert solver.points(q)[1] @ d == pytest.approx(numeric, abs=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["upper", "lower"])
def test_a_step_is_the_bounded_least_squares_from_where_the_limits_let_it_begin(sign):
    """Against SciPy: joints so fast that the bounds exclude the posture before, so that the step begins at a bound."""
    from scipy.optimize import lsq_linear

    robot, dt, rng = load_robot("wabian2", "fixed"), 0.05, np.random.default_rng(4)
    solver = Retargeter(robot, RetargetSettings(avoidance="none", iterations=1, acceleration=20.0))
    p, n = solver.solved, solver.constants
    for _ in range(5):
        before = p.lower + rng.uniform(0.4, 0.6, len(p.rest)) * (p.upper - p.lower)
        v = -sign * rng.uniform(2.0, 3.0, len(before))
        goal = solver.points(before)[0] + rng.uniform(-0.1, 0.1, (7, 3))
        low, high = velocity_bounds(before, JointLimits(p.lower, p.upper, p.velocity), dt, 0.0, v, n.acceleration)
        low, high = np.maximum(before + dt * low, p.lower), np.minimum(before + dt * high, p.upper)
        start, x = np.clip(before, low, high), np.empty(len(before))
        assert (np.abs(start - before) > 0.03).sum() > len(before) // 2
        points, J = solver.points(start)
        rows = [J, n.damping * np.eye(len(x)), n.posture * np.eye(len(x)), n.smoothing * np.eye(len(x))]
        free, rest = before + dt * v - start, p.rest - start
        wanted = [(goal - points).ravel(), np.zeros(len(x)), n.posture * rest, n.smoothing * free]
        step = lsq_linear(np.vstack(rows), np.concatenate(wanted), (low - start, high - start), "bvls", tol=1e-14).x
        to = FrameGoal(goal, before + dt * v, p.rest)
        solve_goal(p, n, to, FrameBefore(before, v, FAR), dt, x, solver.scratch)
        assert x == pytest.approx(start + step, abs=1e-7)


def test_reachable_motion_is_followed_closely():
    """Targets made by the robot itself can be reached: the error must be small, not just bounded."""
    robot = load_robot("wabian2", "fixed")
    m, T, rate = robot.imitation_joints, 300, 60.0
    t = np.arange(T) / rate
    amplitude = 0.25 * np.minimum(robot.upper[m] - robot.postures["neutral"][m], 1.0)
    start = robot.postures["neutral"].copy()
    points = []
    for k in range(T):
        joints = start.copy()
        joints[m] += amplitude * np.sin(2 * np.pi * 0.3 * t[k]) ** 2
        points.append(robot.point_positions(robot.q(joints), POINTS))
    solver = Retargeter(robot, RetargetSettings(damping=0.01))
    solver.start(points[0])
    errors = []
    for p in points[1:]:
        solver.step(p, 1 / rate)
        errors.append(solver.errors(p))
    assert np.mean(errors) < 0.01


@pytest.mark.parametrize("name", ["lola", "armar3"])
def test_nothing_pushes_at_rest(name):
    """Targets of the neutral posture leave it, though some shapes are nearer there than the margin."""
    robot = load_robot(name, "fixed")
    moved = Retargeter(robot).problem
    assert (moved.at_rest < 0.08).any()
    targets = robot.point_positions(robot.q(), POINTS)
    for margin in (0.01, 0.08):
        retargeter = Retargeter(robot, RetargetSettings(margin=margin, activation=0.15))
        assert np.abs(retargeter.start(targets) - robot.postures["neutral"]).max() < 1e-6
        for _ in range(20):
            joints = retargeter.step(targets, 0.01)
        assert np.abs(joints - robot.postures["neutral"]).max() < 1e-6


def test_nan_targets_hold_the_posture():
    robot = load_robot("hrp2", "fixed")
    solver = Retargeter(robot)
    goal = robot.point_positions(robot.q("neutral"), POINTS)
    before = solver.start(goal)
    bad = goal.copy()
    bad[3, 1] = np.nan
    assert np.array_equal(solver.step(bad, 0.02), before)
    with pytest.raises(ClipError, match="non-numeric"):
        solver.start(bad)


def test_a_first_frame_that_is_no_posture_is_refused():
    robot = load_robot("hrp2", "fixed")
    solver = Retargeter(robot)
    elsewhere = robot.point_positions(robot.q("neutral"), POINTS) * [1, 1, -1]
    with pytest.raises(ClipError, match=r"my clip: the best first posture is .* cm from its targets: rejected"):
        solver.start(elsewhere, "my clip")


@pytest.mark.parametrize(
    "clip",
    [
        "dance_markers/dance1.trc",
        "dance_markers/walk1.trc",
        "vicon_c3d/PiG_Motion-FlatFoot-One.c3d",
        "cmu_bvh/05_02.bvh",
    ],
)
@pytest.mark.parametrize("name", ["wabian2", "we4rii"])
def test_real_clips_are_imitated(clip, name, mocap):
    """The two best imitators of Dube 2012 follow real captured motion to a few centimetres."""
    body = find_body_points(load_clip(mocap(clip)))
    robot = load_robot(name, "fixed")
    t = retarget_clip(scale_to_robot(body, robot), robot)
    assert (np.abs(t.velocities) <= robot.velocity * (1 + 1e-9)).all()
    assert t.errors.mean() < (0.05 if "bvh" in clip else 0.03)


@pytest.mark.parametrize(
    ("name", "clip"),
    [
        *((n, None) if n in KINDS else nightly(n, None) for n in (*CATALOGUE, "recommended")),
        *((n, c) if n in KINDS else nightly(n, c) for n in ("armar3", "hrp2", "lola") for c in REAL),
    ],
)
def test_constrained_trajectories_never_collide_and_keep_their_acceleration(name, clip, dance, mocap):
    """Distances by coal, which had no part in the solution."""
    robot = load_robot(name, "fixed")
    body = dance if clip is None else find_body_points(load_clip(mocap(clip)))
    t = retarget_clip(scale_to_robot(body, robot), robot)
    distance, data = robot.self_distance(), robot.model.createData()
    moved = np.zeros(len(robot.pairs), dtype=bool)
    first = None
    for q in t.positions[::3]:
        pin.forwardKinematics(robot.model, data, robot.q(q))
        d = distance.all_distances(data)
        first = d if first is None else first
        moved |= np.abs(d - first) > 1e-9
        assert d[moved].min(initial=1.0) > -2e-3, "coal measures polyhedra up to 0.9 % larger than the shapes"
    assert t.clearance.min() >= 0
    a = np.diff(t.positions, 2, axis=0) * t.rate**2
    assert np.mean(t.used_fallback > 0) < 0.03
    calm = np.convolve(t.used_fallback > 0, np.ones(15), "full")[: len(t.used_fallback)][2:] == 0
    assert np.abs(a[calm]).max() <= 200 * (1 + 1e-6)


def test_a_clip_and_its_mirror_image_give_mirrored_trajectories(dance):
    robot = load_robot("we4rii", "fixed")
    targets = scale_to_robot(dance, robot)
    order = [0, 2, 1, 4, 3, 6, 5]
    mirrored = replace(targets, positions=targets.positions[:, order] * [1, -1, 1])
    plain, other = retarget_clip(targets, robot), retarget_clip(mirrored, robot)
    swap = [robot.joint_index(_other_side(n)) for n in robot.joint_names]
    middle = np.array([n in ("waist_rotation", "neck_rotation", "neck_lateral_flexion") for n in robot.joint_names])
    expected = np.where(middle, -1.0, 1.0) * plain.positions[:, swap]
    moving = robot.imitation_joints
    assert np.abs(expected - other.positions)[:, moving].max() < 1e-3


def _other_side(name):
    return {"l_": "r_", "r_": "l_"}.get(name[:2], name[:2]) + name[2:]


@pytest.mark.parametrize("mimics", [False, True])
def test_stepping_frame_by_frame_is_solving_the_clip(dance, mimics, monkeypatch):
    robot = load_robot("hrp2", "fixed")
    leg, arm = robot.index["l_knee_flexion"], robot.index["r_elbow_flexion"]
    if mimics:  # a joint that no clip moves follows one that it does
        monkeypatch.setattr(robot, "mimic", [(leg, arm, 0.5, 0.1)])
    targets = scale_to_robot(dance, robot)
    for settings in (RetargetSettings(), RetargetSettings(method="weighted_dls", avoidance="shift")):
        whole = retarget_clip(targets, robot, settings)
        solver = Retargeter(robot, settings)
        live = [solver.start(targets.positions[0])]
        live += [solver.step(p, 1 / targets.rate) for p in targets.positions[1:400]]
        assert np.abs(np.array(live) - whole.positions[:400]).max() < 1e-9
        moved = np.array(live)[:, leg]
        assert np.allclose(moved, 0.5 * np.array(live)[:, arm] + 0.1) if mimics else np.ptp(moved) == 0.0
        assert solver.clearance == pytest.approx(whole.clearance[399])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "constraind"}, "did you mean"),
        ({"avoidance": "shfit"}, "shift"),
        ({"method": "dls", "avoidance": "constraints"}, "use 'shift'"),
        ({"feed_forward": True}, "differential methods"),
        ({"margin": np.nan}, "margin"),
        ({"acceleration": -1.0}, "acceleration"),
    ],
)
def test_wrong_settings_are_named(wrong, message):
    with pytest.raises(HumanoidError, match=message):
        RetargetSettings(**wrong)


def test_a_posture_that_cannot_get_free_is_held_not_forced():
    """Targets that pull both hands through the chest at once: every frame is free of collision all the same."""
    robot = load_robot("armar3", "fixed")
    solver = Retargeter(
        robot, RetargetSettings(velocity_scale=np.inf, acceleration=np.inf, acceleration_scale=np.inf, barrier_gain=1e3)
    )
    goal = robot.point_positions(robot.q("neutral"), POINTS)
    solver.start(goal)
    goal[3:] = goal[0] * [1, 1, 0.8]
    for _ in range(60):
        solver.step(goal, 0.02)
        assert solver.clearance >= 0
    assert solver.clearance < 0.02, "the hands should press against the chest, or this test shows nothing"


# -------- programs without a solution


def unsolvable(solver):
    """Weights of the points for which the curvature of the cost is negative, so that a program has no optimum."""
    weights = solver.problem.weight.copy()
    solver.problem.weight[:] = -1e6
    return weights


def test_a_frame_whose_program_has_no_solution_is_held_and_counted(dance):
    robot = load_robot("hrp2", "fixed")
    targets = scale_to_robot(dance, robot)
    solver, dt = Retargeter(robot), 1.0 / targets.rate
    solver.start(targets.positions[0])
    for k in range(1, 40):
        solver.step(targets.positions[k], dt)
    before = solver.joints.copy()
    weights = unsolvable(solver)
    assert np.array_equal(solver.step(targets.positions[40], dt), before) and solver.used_fallback == HELD
    solver.problem.weight[:] = weights
    q = solver.step(targets.positions[41], dt)
    assert solver.used_fallback != HELD and np.abs(q - before).max() > 0


def test_a_first_frame_whose_program_has_no_solution_is_refused(dance):
    robot = load_robot("hrp2", "fixed")
    solver = Retargeter(robot)
    unsolvable(solver)
    with pytest.raises(ClipError, match="no first posture"):
        solver.start(scale_to_robot(dance, robot).positions[0])
