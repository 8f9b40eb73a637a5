"""The tick in one call: the same as step by step, and as a program written out with pinocchio and daqp."""

import copy

import daqp
import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.ik import (
    AngularMomentumTask,
    CenterOfMassTask,
    FrameTask,
    IdleJointLimit,
    IkSettings,
    IkStatus,
    JointSideLimit,
    JointTask,
    Limit,
    LinearMomentumTask,
    OrientationTask,
    PointsTask,
    PointTask,
    PostureTask,
    SelfCollisionLimit,
    Task,
    WholeBodyIk,
)
from humanoid_control.ik.integrate import integrate_base
from humanoid_control.ik.limits import default_limits
from humanoid_control.ik.tasks import prepare
from humanoid_control.kinematics.forward_kinematics import JointPoses
from humanoid_control.kinematics.joint_twists import LinkInertias, fill_centroidal_map, fill_twists
from humanoid_control.robots import load_robot

DT = 0.004


class HandsLevel(Task):
    """Both wrists at the same height, and beyond 0.1 m also at the same depth: a task of the user's own."""

    def __init__(self, robot):
        super().__init__("hands_level", 0.3, 40.0)
        self.frames = [robot.point_frame(p) for p in ("l_wrist", "r_wrist")]

    def _axes(self, data):
        apart = np.subtract(*(data.oMf[f].translation for f in self.frames))
        return [0, 2] if abs(apart[0]) > 0.1 else [2]

    def error(self, robot, data, q):
        return np.subtract(*(data.oMf[f].translation for f in self.frames[::-1]))[self._axes(data)]

    def rows(self, robot, data, q):
        left, right = (pin.getFrameJacobian(robot.model, data, f, pin.LOCAL_WORLD_ALIGNED) for f in self.frames)
        return (left - right)[self._axes(data)], self.gain * self.error(robot, data, q)


def all_tasks(robot):
    tasks = [
        PointsTask(robot, ["l_wrist", "sternum"], gain=40.0),
        PointTask(robot, "r_wrist", "sternum", "sternum", weight=0.7),
        CenterOfMassTask(robot, weight=0.5),
        OrientationTask(robot, "sternum", weight=0.3),
        FrameTask(robot, "r_elbow", weight=0.2, orientation_weight=0.5),
        JointTask(robot, robot.joint_names[1:3], weight=0.4),
        PostureTask(robot, weight=0.02),
    ]
    for task in tasks:
        task.set_target_from(robot.q())
    return [*tasks, AngularMomentumTask(weight=0.1), LinearMomentumTask(axes=(True, False, True), weight=0.01)]


def sweep(tasks, home, k, size):
    """Targets through the robot's own body, sizes [m] beyond its reach too."""
    phase = 0.03 * k
    tasks[0].targets = home[0] + size * np.array([[np.sin(phase), -np.sin(1.3 * phase), 0.3], [0.0, 0.05, 0.0]])
    tasks[0].velocities = 0.1 * np.cos(phase) * np.ones((2, 3))
    tasks[1].target[:] = home[1] + size * np.array([0.2, np.sin(0.9 * phase), np.cos(phase)])  # in place
    tasks[3].target = pin.exp3(np.array([0.0, 0.1, 0.3 * np.sin(phase)]))
    tasks[4].X_target.translation += 0.001 * np.cos(phase)
    tasks[5].weight = 0.2 + 0.1 * np.sin(phase)
    tasks[7].reference = [0.0, 0.0, 0.2 * np.sin(phase)]


def limits_of(robot, collisions, idle):
    limits = default_limits(robot, collisions)
    apart = next((m for m in limits if isinstance(m, SelfCollisionLimit)), None)
    if idle:
        held = IdleJointLimit(robot, robot.postures["neutral"], 2.0, apart)
        held.follow([robot.point_frame(p) for p in ("l_wrist", "r_wrist", "sternum")])
        limits.insert(-2, held)
        elbows = [robot.joint_index(f"{side}_elbow_flexion") for side in "lr"]
        limits.insert(-2, JointSideLimit(elbows, [0.3, 0.6], [1.0, -1.0], 20.0))
    return limits


@pytest.mark.parametrize(
    ("name", "base", "collisions", "idle", "size"),
    [
        ("lola", "floating", True, False, 0.4),  # saturated, and arms through the body
        ("hrp2", "fixed", True, True, 0.4),
        ("wabian2", "floating", True, True, 0.15),  # mimicking joints
        ("lola", "fixed", False, False, 0.5),
        ("suralp", "floating", False, True, 0.1),
    ],
)
@pytest.mark.parametrize("foreign", [False, True], ids=["own tasks", "a foreign task"])
def test_one_call_does_what_the_steps_do(name, base, collisions, idle, size, foreign):
    robot, tasks = load_robot(name, base), None
    settings = IkSettings(smoothing=0.02)
    one, steps = (WholeBodyIk(robot, settings, limits_of(robot, collisions, idle)) for _ in range(2))
    tasks = [*all_tasks(robot), *[HandsLevel(robot)] * foreign]
    home, q, seen, bound, rows = (tasks[0].targets.copy(), tasks[1].target.copy()), robot.q(), set(), 0, 0
    for k in range(400):
        if k == 200:  # settings and tasks that change on the way
            one.settings = steps.settings = IkSettings(margin=0.03, acceleration=100.0, barrier_gain=12.0)
            tasks = [*tasks[:7], *tasks[9:]]
            home = tasks[0].targets.copy(), tasks[1].target.copy()
        if k < 200:
            sweep(tasks, home, k, size)
        steps.v = one.v.copy()
        a, b = one.step(q, tasks, DT), steps._step_by_step(q, tasks, DT)
        assert one._tick is not None and foreign == (one._tick._tasks.foreign in (1, 2))
        assert np.allclose(a.v, b.v, atol=2e-6) and np.allclose(a.q, b.q, atol=1e-8)
        assert a.status is b.status and a.ok == b.ok and a.report.rows == b.report.rows
        assert np.isclose(a.report.slack, b.report.slack, atol=1e-5)
        assert a.report.limit_violation == b.report.limit_violation
        assert np.array_equal(a.near.pair, b.near.pair) and np.allclose(a.near.distance, b.near.distance, atol=1e-12)
        assert np.allclose(a.near.point_2, b.near.point_2, atol=1e-9)
        assert np.allclose(one.data.oMf[-1].translation, steps.data.oMf[-1].translation)
        q = a.q
        seen.add(a.status)
        rows += a.report.rows
        low, high = one._memory.record.bounds
        bound += int(((one._memory.record.x <= low) | (one._memory.record.x >= high)).sum())
    assert bound > 400, "limits should have held it back, or this shows nothing"
    assert rows > 50 or not collisions
    assert IkStatus.OPTIMAL in seen


def test_a_foreign_task_alone_is_solved():
    robot = load_robot("hrp2", "fixed")
    posture = robot.postures["neutral"].copy()
    posture[robot.joint_index("l_elbow_flexion")] += 0.5
    solver, q = WholeBodyIk(robot), robot.q(posture)
    for _ in range(800):
        q = solver.step(q, [HandsLevel(robot)], DT).q
    left, right = robot.point_positions(q, ["l_wrist", "r_wrist"])
    assert abs(left[2] - right[2]) < 1e-3


def test_a_foreign_task_that_is_not_a_number_brakes_and_is_forgotten():
    class Broken(HandsLevel):
        good = True

        def rows(self, robot, data, q):
            J, v = super().rows(robot, data, q)
            return J, v if self.good else np.full(len(v), np.nan)

    robot = load_robot("hrp2", "fixed")
    task, solver, q = Broken(robot), WholeBodyIk(robot), robot.q()
    for k in range(30):
        task.good = not 10 <= k < 20
        result = solver.step(q, [task, PostureTask(robot, weight=0.01)], DT)
        assert np.isfinite(result.v).all() and np.isfinite(result.q).all()
        assert (result.status is IkStatus.NO_SOLUTION) == (10 <= k < 20)
        q = result.q


def test_pairs_that_are_looked_at_again_change_rows_only(monkeypatch):
    """Limits with a memory, as that of idle joints, must not take a tick for two."""

    class Once(Limit):
        ticks = 0

        def tighten(self, state, lower, upper):
            self.ticks += 1

    robot, once, again = load_robot("lola", "floating"), Once(), 0
    solver = WholeBodyIk(robot, IkSettings(smoothing=0.02), [*default_limits(robot), once])
    look = solver.self_collision.look_again

    def look_again(near, *rest):
        nonlocal again
        found = look(near, *rest)
        again += found is not near
        return found

    monkeypatch.setattr(solver.self_collision, "look_again", look_again)
    tasks = all_tasks(robot)
    home, q, once.ticks = (tasks[0].targets.copy(), tasks[1].target.copy()), robot.q(), 0
    for k in range(300):
        sweep(tasks, home, 3 * k, 0.2)
        q = solver.step(q, tasks, DT).q
    assert again > 0, "no pair was found at the second look, or this shows nothing"
    assert once.ticks == 300


def test_a_collision_is_left_the_same_way_and_ends_in_one_call_again():
    robot = load_robot("hrp2", "fixed")
    one, steps = WholeBodyIk(robot), WholeBodyIk(robot)
    rng = np.random.default_rng(3)
    q = next(
        q
        for q in (robot.q(rng.uniform(robot.lower, robot.upper)) for _ in range(200))
        if -0.05 < robot.shape_clearance(q).min() < -0.01
    )
    depths, posture = [], [PostureTask(robot)]
    for _ in range(900):
        steps.v = one.v.copy()
        a, b = one.step(q, posture, DT), steps._step_by_step(q, posture, DT)
        assert np.allclose(a.v, b.v, atol=1e-6) and a.status is b.status
        assert a.report.penetration_depth == b.report.penetration_depth == one.self_collision.penetration_depth
        depths.append(a.report.penetration_depth)
        q = a.q
    assert depths[0] > 0.01 and depths[-1] == 0.0 and not one.self_collision.recovery.is_homing


def test_a_tick_is_the_optimum_of_the_program_that_it_claims_to_solve():
    """Rows of pinocchio, all pairs measured anew, limits by their formulas, daqp with the slack written out."""
    robot = load_robot("hrp2", "floating")  # no joint of it mimics another
    s = IkSettings()
    solver, tasks = WholeBodyIk(robot), all_tasks(robot)
    home, q, data = (tasks[0].targets.copy(), tasks[1].target.copy()), robot.q(), robot.model.createData()
    monitor, at_rest = robot.collision_monitor("shapes"), robot.largest_margins()
    nv, own = robot.nv, robot.accelerations_within(s.acceleration, s.acceleration_scale)
    compared = with_rows = 0
    for k in range(300):
        sweep(tasks, home, k, 0.4)
        before = solver.v.copy()
        result = solver.step(q, tasks, DT)
        if k % 3 == 0 and result.status is IkStatus.OPTIMAL:
            prepare(robot, data, q)
            A, b = [], []
            for task in tasks:
                J, v = task.rows(robot, data, q)
                v = v - max(task.gain - s.max_gain / DT, 0.0) * task.error(robot, data, q)
                A.append(task.weight * J)
                b.append(task.weight * v)
            A, b = np.vstack(A), np.concatenate(b)
            H = A.T @ A + (s.damping**2 + s.smoothing**2) * np.eye(nv)
            g = -A.T @ b - s.smoothing**2 * before
            low, high = bounds(robot, s, q, before, own)
            G, h = pair_rows(robot, monitor.update(q, 1.0), at_rest, s, data.J, own, (low, high))
            v = optimum(H, g, low, high, G, h, 2 * s.slack_weight)
            assert np.abs(v - result.v).max() < 2e-4 * (1 + np.abs(v).max())
            compared += 1
            with_rows += len(h) > 0
        q = result.q
    assert compared > 60 and with_rows > 20


def bounds(robot, s, q, before, own):
    """Speed, range with room to brake, acceleration: each clipped to what is left, written out."""
    iv, high = robot.iv, np.concatenate([np.full(robot.iv, s.base_velocity), robot.velocity])
    low, joints, v, a, b = -high, q[robot.iq :], before[robot.iv :], DT * own.acceleration, own.braking
    room = np.maximum([joints - robot.lower, robot.upper - joints], 0.0)
    ease = np.minimum(s.range_ease, 0.05 * (robot.upper - robot.lower))
    late = np.sqrt((b * DT) ** 2 + 2 * b * np.maximum(room - ease / 2, 0.0)) - b * DT
    stop = np.where(room < ease, room / (np.sqrt(ease / b) + DT), late)
    down, up = np.maximum(low[iv:], -room[0] / DT), np.minimum(high[iv:], room[1] / DT)
    least, most = np.clip(v - a, down, up), np.clip(v + a, down, up)
    down, up = np.clip(np.maximum(down, -stop[0]), least, most), np.clip(np.minimum(up, stop[1]), least, most)
    low[iv:], high[iv:] = np.clip(down, v - a, v + a), np.clip(up, v - a, v + a)
    return low, high


def pair_rows(robot, near, at_rest, s, J, own, limits):
    """Barrier of each pair."""
    G, h = [], []
    a = np.concatenate([np.full(robot.iv, s.acceleration), own.acceleration])
    for k, d, row in zip(near.pair, near.distance, near.gradient(J), strict=True):
        x = d - min(s.margin, at_rest[k])
        braking = 0.5 * np.abs(row) @ a
        knee = braking / s.barrier_gain**2
        close = s.barrier_gain * x if x <= knee else np.sqrt(2 * braking * (x - knee / 2))
        bound = -close if x > 0 else min(-s.barrier_gain * x, s.pair_recovery_speed)
        if np.minimum(row * limits[0], row * limits[1]).sum() < bound:
            G.append(row)
            h.append(bound)
    return np.array(G).reshape(-1, robot.nv), np.array(h)


def optimum(H, g, low, high, G, h, rho):
    n, k = len(g), len(h)
    big = np.zeros((n + k, n + k))
    big[:n, :n], big[n:, n:] = H, rho * np.eye(k)
    free = np.full(k, 1e30)
    rows = np.ascontiguousarray(np.hstack([G, np.eye(k)]))
    upper, lower = np.concatenate([high, free, free]), np.concatenate([low, -free, h])
    x, _, flag, _ = daqp.solve(big, np.concatenate([g, np.zeros(k)]), rows, upper, lower, np.zeros(n + 2 * k, np.int32))
    assert flag > 0
    return x[:n]


def test_what_a_task_is_told_counts_at_once_also_in_a_copy_of_the_solver():
    robot = load_robot("lola", "floating")
    solver, hand, q = WholeBodyIk(robot), PointTask(robot, "l_wrist"), robot.q()
    hand.set_target_from(q)
    still = solver.step(q, [hand], DT).v.copy()
    assert np.abs(still).max() < 1e-9
    hand.target[0] += 0.05
    solver.reset()
    moved = solver.step(q, [hand], DT).v.copy()
    assert np.abs(moved).max() > 1e-3
    other, theirs = copy.deepcopy((solver, hand), {id(robot): robot})
    other.reset()
    assert np.allclose(other.step(q, [theirs], DT).v, moved)
    theirs.target[0] -= 0.05
    other.reset()
    assert np.abs(other.step(q, [theirs], DT).v).max() < 1e-9
    solver.reset()
    assert np.allclose(solver.step(q, [hand], DT).v, moved)


def test_a_report_that_is_looked_at_late_is_that_of_its_tick():
    robot = load_robot("hrp2", "fixed")
    solver, tasks, q = WholeBodyIk(robot), all_tasks(robot), robot.q()
    first = solver.step(q, tasks, DT)
    now = WholeBodyIk(robot).step(q, tasks, DT).near.distance.copy()
    for k in range(50):
        sweep(tasks, (tasks[0].targets.copy(), tasks[1].target.copy()), k, 0.1)
        q = solver.step(q, tasks, DT).q
    assert np.array_equal(first.near.distance, now)
    q, v, report = first
    assert report is first.report and len(first) == 3 and first[1] is v


@pytest.mark.parametrize("name", ["lola", "wabian2"])
@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_twists_and_centroidal_map_are_those_of_pinocchio(name, base):
    robot, rng = load_robot(name, base), np.random.default_rng(0)
    poses, links, J = JointPoses(robot.model), LinkInertias.of(robot.model), np.empty((6, robot.nv))
    for far in (0.0, 1000.0):
        q = pin.integrate(robot.model, robot.q(), rng.normal(size=robot.nv))
        q[: min(3, robot.iq)] += far
        poses.update(q)
        fill_twists(poses.tree, poses.world, J)
        fill_centroidal_map(poses.tree, poses.world, links)
        assert np.allclose(J, pin.computeJointJacobians(robot.model, robot.data, q), atol=1e-12 * (1 + far))
        assert np.allclose(links.momentum, pin.computeCentroidalMap(robot.model, robot.data, q), atol=1e-9 * (1 + far))


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-4, 0.99e-4, 1e-3, 0.3, 3.0, 6.0])
def test_a_base_moves_as_pinocchio_moves_it(size):
    robot, rng = load_robot("lola", "floating"), np.random.default_rng(1)
    for _ in range(20):
        q = pin.integrate(robot.model, robot.q(), rng.normal(size=robot.nv))
        v, out = rng.normal(size=robot.nv), np.empty(7)
        v[3:6] *= size / np.linalg.norm(v[3:6])
        integrate_base(q, v, 1.0, out)
        there = pin.integrate(robot.model, q, v)[:7]
        assert np.allclose(out[:3], there[:3], atol=1e-12)
        assert min(np.abs(out[3:] - there[3:]).max(), np.abs(out[3:] + there[3:]).max()) < 1e-12


def test_a_target_that_is_no_number_is_noticed_also_when_every_joint_is_at_a_bound():
    """What held the last solution is tried first: a guess must not hide that there is none."""
    robot = load_robot("hrp2", "fixed")
    solver, hand, posture, q = WholeBodyIk(robot), PointTask(robot, "l_wrist"), PostureTask(robot, gain=50.0), robot.q()
    hand.set_target_from(q)
    posture.posture = robot.upper
    for _ in range(5):
        q = solver.step(q, [hand, posture], DT).q
    assert np.count_nonzero(solver._memory.record.guess.side) > robot.n // 2
    hand.target[1] = np.nan
    result = solver.step(q, [hand, posture], DT)
    assert not result.ok and result.status is IkStatus.NO_SOLUTION and np.isfinite(result.q).all()
    hand.set_target_from(q)
    assert solver.step(q, [hand, posture], DT).ok
