"""Contacts and locks, one rule at a time, on feet whose motion is written down here."""

import re

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.retargeting import WholeBodyRetargeter
from humanoid_control.retargeting.frame_solver import FrameBefore, FrameGoal, normal_equations
from humanoid_control.retargeting.problem import place_points, point_jacobian
from humanoid_control.retargeting.whole_body.contacts import (
    ContactMemory,
    ContactRules,
    ContactSoles,
    FootMemory,
    FootTargets,
    find_contacts,
    foot_targets,
)
from humanoid_control.retargeting.whole_body.frames import INDIFFERENT, forget_posture, move_base, returning_goal
from humanoid_control.robots import load_robot

RULES, DT, LENGTH = ContactRules(), 0.01, 0.2
SIDES = np.array([0.05, -0.05, 0.05, -0.05])
SOLES = ContactSoles(np.full(2, LENGTH), np.full((2, 2), 0.1), np.tile(SIDES, (2, 1)))
AWAY = np.array([0.0, -0.5, 0.0, 0.3, 0.3])  # of the other foot, in the air


class Feet:
    """Both feet; the right one hangs in the air. The robot's soles are where they are put."""

    def __init__(self):
        self.memory = FootMemory.new()
        self.out = FootTargets(np.zeros((8, 3)), np.zeros(8), np.zeros((8, 3)), np.zeros(4, dtype=bool))

    def step(self, free, contact, at):
        """Targets (4, 3) of the left sole: its free pose, its contact, and the pose (5,) at which the robot has it."""
        corners = np.vstack([flat(at), flat(AWAY)])
        flags = np.array([*contact, False, False])
        foot_targets(RULES, SOLES, np.array([free, AWAY]), flags, corners, DT, self.memory, self.out)
        return self.out.target[:4].copy()


def flat(pose):
    """Corners (4, 3) of a level sole at the pose (x, y, yaw, height, height)."""
    x, y, yaw, z, _ = pose
    R = pin.rpy.rpyToMatrix(0.0, 0.0, yaw)
    return np.array([R @ [LENGTH * (k // 2), SIDES[k], 0.0] for k in range(4)]) + [x, y, z]


def test_a_creeping_foot_is_let_go_once_it_is_away_and_not_before():
    memory, speed = ContactMemory.new(), 0.1
    points = np.array([[0.0, 0.0, 0.0]] * 4)
    kept = []
    for _ in range(100):
        find_contacts(RULES, points, DT, memory)
        kept.append(memory.contact.all())
        points = points + [speed * DT, 0.0, 0.0]
    assert all(kept[: int(RULES.away / speed / DT)])
    let_go = int(np.argmin(kept))
    assert let_go == pytest.approx(RULES.away / speed / DT, abs=2)


@pytest.mark.parametrize(
    "height, speed, held", [(0.04, 0.0, True), (0.06, 0.0, False), (0.0, 0.5, True), (0.0, 0.7, False)]
)
def test_contact_has_hysteresis(height, speed, held):
    memory = ContactMemory.new()
    for z in (0.04, 0.02, 0.0):  # comes down: too high at first
        find_contacts(RULES, np.tile([0.0, 0.0, z], (4, 1)), 1.0, memory)
        assert memory.contact.all() == (z < RULES.on_height)
    find_contacts(RULES, np.tile([0.0, 0.0, height], (4, 1)), 1.0, memory)
    find_contacts(RULES, np.tile([speed * DT, 0.0, height], (4, 1)), DT, memory)
    assert memory.contact.all() == held


def test_a_foot_that_creeps_does_not_flicker():
    """It moves 0.7 m/s in one frame of six: away, and not back at once."""
    memory, x, kept = ContactMemory.new(), 0.0, []
    for k in range(60):
        x += 0.007 if k % 6 == 5 else 0.0
        find_contacts(RULES, np.tile([x, 0.0, 0.0], (4, 1)), DT, memory)
        kept.append(memory.contact[0])
    away = np.flatnonzero(np.diff(np.array(kept, dtype=int)) < 0)
    assert len(away) and (np.diff(away) * DT >= RULES.rest).all()


def test_a_foot_is_caught_where_it_is_and_held_where_it_came_down():
    feet, free = Feet(), np.array([0.5, 0.1, 0.3, 0.02, 0.02])
    first = feet.step(free, (True, True), free)
    assert first == pytest.approx(flat(free)), "no jump when it is caught"
    late = np.array([0.51, 0.09, 0.25, 0.01, 0.01])  # the robot's leg lags
    for _ in range(8):
        feet.step(free + [0.1, 0, 0, 0, 0], (True, True), late)
    assert not feet.out.contact.any() and feet.out.weight[:4].max() <= 1.001 * RULES.landing
    down = late * [1, 1, 1, 0, 0]
    held = feet.step(free, (True, True), down)
    assert feet.out.contact[:2].all() and (feet.out.weight[:4] == RULES.lock).all()
    assert held == pytest.approx(flat(down))
    assert feet.step(free + [0.05, 0, 0.1, 0, 0], (True, True), down) == pytest.approx(flat(down)), "it stays"


def test_a_foot_that_moves_is_caught_without_a_jerk():
    """It comes down at 0.5 m/s and forward at 0.3 m/s: its targets begin with that speed, and end at rest."""
    feet, v = Feet(), np.array([0.3, 0.0, 0.0, -0.5, -0.5])
    air = np.array([0.5, 0.1, 0.3, 0.03, 0.03])
    for k in range(3):
        feet.step(air + k * DT * v, (False, False), air + k * DT * v)
    now, path = air + 2 * DT * v, [flat(air + 1 * DT * v), flat(air + 2 * DT * v)]
    for _ in range(8):
        now = now + DT * v if len(path) == 2 else now  # the robot is where the first target asks for
        path.append(feet.step(now, (True, True), now))
    speed = np.diff(path, axis=0) / DT
    assert np.linalg.norm(np.diff(speed, axis=0), axis=2).max() < 0.3  # [m/s] a frame
    assert speed[-1] == pytest.approx(np.zeros((4, 3)), abs=1e-9) and path[-1][:, 2] == pytest.approx(np.zeros(4))
    assert (path[-1] - path[2])[:, 0] == pytest.approx(np.full(4, 0.3 * RULES.blend / 3))


def test_a_foot_that_is_let_go_is_free_at_once():
    feet, stand = Feet(), np.array([0.5, 0.1, 0.3, 0.0, 0.0])
    for _ in range(10):
        feet.step(stand, (True, True), stand)
    assert feet.out.contact[:2].all()
    ahead = stand + [0.05, 0.02, 0.0, 0.03, 0.03]
    assert feet.step(ahead, (False, False), stand) == pytest.approx(flat(ahead))
    assert (feet.out.weight == RULES.free).all() and not feet.out.contact.any()
    assert feet.out.free[:4] == pytest.approx(flat(ahead))


def test_an_error_goes_as_that_of_a_critically_damped_oscillator():
    """Of a point that was held at rest; one that nothing held has its target exactly, however that moves."""
    solver = WholeBodyRetargeter(load_robot("hrp2", "floating"))
    p, feet, d, K = solver.problem, solver._feet, len(solver.problem.rest), len(solver.problem.point)
    p.weight[p.soles] = RULES.lock
    feet.memory.locked[:] = [True, False]
    goal = FrameGoal(np.empty((K, 3)), np.empty(d), np.empty(d))
    start, target = np.array([0.03, -0.02, 0.05]), np.random.default_rng(3).normal(size=(30, K, 3))
    feet.errors.last[:], feet.errors.before[:] = start, start
    feet.errors.last[1], feet.errors.before[1] = 0.0, 0.0
    before = FrameBefore(p.rest + 0.1, np.zeros(d), 1.0)
    for k in range(30):
        returning_goal(p, feet, before, DT, target[k], goal)
        e = goal.target - target[k]
        for point, rate in (
            (0, RULES.body_return),
            (-1, RULES.foot_return),
        ):  # (a + b t) exp(-rate t), at rest at first
            z = np.exp(-rate * DT)
            assert e[point] == pytest.approx(start * (1 + (1 - z) * (k + 1)) * z ** (k + 1), abs=1e-12)
        assert not e[1].any() and not e[p.soles[:4]].any(), "a target that nothing disturbs, and a foot that is held"
        feet.errors.before[:] = feet.errors.last
        feet.errors.last[:] = e
    z = np.exp(-RULES.body_return * DT)
    assert goal.rest[6:] == pytest.approx(p.rest[6:] + (2 * z - z * z) * 0.1)
    assert goal.expected == pytest.approx(before.x)


def test_the_posture_goes_back_to_rest_where_that_moves_no_point():
    """By N (critically damped return less going on), N = e^2 (J'WJ + e^2)^-1, here by NumPy and pinocchio's joints."""
    solver, rng = WholeBodyRetargeter(load_robot("hrp2", "floating")), np.random.default_rng(4)
    p, n, w, d = solver.problem, solver.constants, solver.scratch, len(solver.problem.rest)
    x = np.clip(p.rest + 0.3 * rng.normal(size=d), p.lower, p.upper)
    x[: p.base] = 0.0
    v, feet = 0.2 * rng.normal(size=d), solver._feet
    rate = feet.rules.posture_return
    feet.memory.locked[:] = [True, False]  # the right foot is in the air: its leg takes no part
    goal, J = FrameGoal(np.zeros((len(p.point), 3)), x + DT * v, x.copy()), np.empty((3 * len(p.point), d))
    forget_posture(p, n, feet, FrameBefore(x, v, 1.0), DT, w, goal)
    assert goal.expected == pytest.approx(x + DT * v), "nothing is known before the first step of the solver"
    place_points(p, x, w)
    point_jacobian(p, w, J)
    normal_equations(p, n, goal, x, w, J, w.curvature, np.empty(d))
    forget_posture(p, n, feet, FrameBefore(x, v, 1.0), DT, w, goal)
    z, moved = np.exp(-rate * DT), goal.expected - x - DT * v
    off = x - p.rest
    step = (2 * z - 1) * off - z * z * (off - DT * v) - DT * v
    names = ["base"] * p.base + [solver.robot.joint_names[k] for k in solver.moving]
    step[[k for k, n in enumerate(names) if n == "base" or re.match("r_(hip|knee|ankle)", n)]] = 0.0
    e = INDIFFERENT**2 * np.eye(d)
    W = np.repeat(p.weight, 3)[:, None]
    assert moved == pytest.approx(np.linalg.solve(J.T @ (W * J) + e, e @ step), rel=1e-6, abs=1e-9)
    assert np.linalg.norm(J @ moved) < 0.1 * np.linalg.norm(J @ step)
    assert moved @ step > 0.05 * step @ step, "of the way back something is left"


def test_a_sole_rolls_over_its_toe_edge():
    feet, stand = Feet(), np.array([0.5, 0.1, 0.3, 0.0, 0.0])
    for _ in range(10):
        feet.step(stand, (True, True), stand)
    toes = flat(stand)[2:]
    for rise in (0.02, 0.05, 0.08):
        target = feet.step(stand + [0.03, 0.0, 0.0, rise, 0.0], (False, True), stand)
        assert target[2:] == pytest.approx(toes)
        assert np.linalg.norm(target[:2] - target[2:], axis=1) == pytest.approx(np.full(2, LENGTH), rel=0.03)
        assert feet.out.contact[:2].tolist() == [False, True]


def test_the_velocity_of_the_base_is_the_same_in_its_moved_frame():
    solver, rng = WholeBodyRetargeter(load_robot("hrp2", "floating")), np.random.default_rng(5)
    p, w = solver.problem, solver.scratch
    base = pin.SE3.Random()
    p.tree.joints.R[0], p.tree.joints.p[0] = base.rotation, base.translation
    x, v = np.zeros(len(p.rest)), rng.normal(size=len(p.rest))
    x[:6] = [0.01, -0.02, 0.03, 0.3, 0.0, 0.0]  # yawed only: the rates of roll and pitch then turn by that
    linear, joints = base.rotation @ v[:3], v[6:].copy()
    spin = base.rotation @ np.array([v[4], v[5], v[3]])
    place_points(p, x, w)
    before = w.points.copy()
    move_base(p, w, x, v)
    assert not x[:6].any() and p.tree.joints.R[0] @ v[:3] == pytest.approx(linear)
    assert p.tree.joints.R[0] @ np.array([v[4], v[5], v[3]]) == pytest.approx(spin)
    assert v[6:] == pytest.approx(joints)
    place_points(p, x, w)
    assert w.points == pytest.approx(before)
