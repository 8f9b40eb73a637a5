"""The tick of the resolved rate in one call: the same as step by step, and that where something is not known."""

import copy

import numpy as np
import pytest

from humanoid_control.ik import AngularMomentumTask, JointTask, PointTask
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.null_space import (
    ComfortCost,
    JointLimitCost,
    ManipulabilityCost,
    MomentumTracking,
    ResolvedRate,
    SelfCollisionCost,
    SolverSettings,
)
from humanoid_control.robots import load_robot
from humanoid_control.robots.self_collision import ShapePairs, VolumePairs

DT = 0.004
ARM = ["l_wrist", "r_wrist"]


def tasks_of(robot):
    tasks = [PointTask(robot, name, gain=60.0) for name in ARM] + [JointTask(robot, robot.joint_names[1:3], weight=0.3)]
    for task in tasks:
        task.set_target_from(robot.q())
    return tasks


def sweep(tasks, home, k, size):
    """Hands go in front of the body, through each other and back; one target is set in place."""
    phase = 0.05 * k
    tasks[0].target = home[0] + size * np.array([np.sin(phase), -np.sin(0.7 * phase), 0.3 * np.sin(1.3 * phase)])
    tasks[1].target[:] = home[1] + size * np.array([np.sin(phase), np.sin(0.9 * phase), np.sin(1.1 * phase)])
    tasks[2].weight = 0.2 + 0.1 * np.sin(phase)


def objectives_of(robot, kinds, monitor):
    objectives = {"limits": JointLimitCost(0.4, 5.0), "comfort": ComfortCost(robot.postures["neutral"], 0.5)}
    if "pairs" in kinds:
        objectives["pairs"] = SelfCollisionCost(robot, 0.08)
        objectives["pairs"].pairs = monitor(robot)
        count = objectives["pairs"].pairs.count
        objectives["pairs"].activation, objectives["pairs"].contact = np.full(count, 0.08), np.full(count, 2.0)
    return [objectives[k] for k in kinds]


@pytest.mark.parametrize(
    ("name", "base", "kinds", "monitor", "axis", "size"),
    [
        ("lola", "floating", ("limits", "comfort", "pairs"), VolumePairs, 2, 0.3),
        ("lola", "floating", ("pairs",), ShapePairs, 0, 0.3),
        ("wabian2", "floating", ("pairs", "limits"), ShapePairs, None, 0.25),  # mimicking joints
        ("hrp2", "fixed", ("comfort",), ShapePairs, 1, 0.2),
        ("armar3", "fixed", (), ShapePairs, None, 0.2),
    ],
)
def test_one_call_does_what_the_steps_do(name, base, kinds, monitor, axis, size):
    robot = load_robot(name, base)
    dofs = DofSelection(robot, robot.joint_names[:1], {robot.joint_names[2]: 3.0})
    momentum = None
    if axis is not None:
        joints = robot.joint_names[-4:]
        momentum = MomentumTracking(robot, joints, axes=[k == axis for k in range(3)], mu=0.05)
    objectives = objectives_of(robot, kinds, monitor)
    one, steps = (ResolvedRate(robot, objectives, SolverSettings(2.0), dofs, momentum) for _ in range(2))
    tasks, q, pushed, slowed, clamped = tasks_of(robot), robot.q(), 0, 0, 0
    home = [task.target.copy() for task in tasks[:2]]
    for k in range(400):
        sweep(tasks, home, k, size)
        if k == 200:  # settings, tasks and objectives that change on the way
            one.settings = steps.settings = SolverSettings(1.0, 0.5, clamp=False, keep_range=False)
            tasks = [*tasks[:2], JointTask(robot, robot.joint_names[1:2], weight=0.4)]
            tasks[2].set_target_from(q)
            for objective in objectives:
                if isinstance(objective, ComfortCost):
                    objective.weights = np.linspace(0.0, 1.0, robot.n)
                elif isinstance(objective, SelfCollisionCost):
                    objective.contact = 0.5 * objective.contact
                else:
                    objective.band = 0.2
        if momentum is not None:
            momentum.reference = 0.1 * np.sin(0.05 * k + np.arange(3))
        b = steps._step_by_step(q, tasks, DT)
        demand = None if momentum is None else (momentum.demand, momentum.J.copy())
        near = [o.near for o in objectives if isinstance(o, SelfCollisionCost)]
        a = one.step(q, tasks, DT)
        assert one._compiled._packed is not None and one._data.waits, "it was to be done in one call"
        scale = 1.0 + np.abs(b[1]).max()
        assert np.allclose(a[1], b[1], atol=1e-8 * scale) and np.allclose(a[0], b[0], atol=1e-10 * scale)
        for field in ("ok", "note", "damping", "iterations"):
            assert getattr(a[2], field) == getattr(b[2], field)
        for field in ("task_residual", "manipulability", "null_scale", "speed_scale"):
            assert np.isclose(getattr(a[2], field), getattr(b[2], field), rtol=1e-6, atol=1e-8)
        assert np.array_equal(one.v, a[1])
        assert np.allclose(one.data.oMf[-1].translation, steps.data.oMf[-1].translation, atol=1e-12)
        if demand is not None:
            assert np.isclose(momentum.demand, demand[0], rtol=1e-6) and np.allclose(momentum.J, demand[1], atol=1e-10)
            clamped += momentum.demand > momentum.speed_share
        for objective in objectives:
            if isinstance(objective, SelfCollisionCost):
                assert np.array_equal(objective.near.pair, near[0].pair)
                pushed += len(objective.near)
        slowed += a[2].null_scale < 1.0 or a[2].speed_scale < 1.0
        q = a[0]
    assert pushed > 100 or "pairs" not in kinds
    assert slowed > 10, "limits should have slowed it, or this shows nothing"
    assert clamped > 10 or axis != 2


def test_what_is_not_known_goes_step_by_step():
    robot = load_robot("hrp2", "fixed")
    tasks, q = tasks_of(robot), robot.q()

    class Own(ComfortCost):
        def gradient(self, robot, data, q):
            return 2.0 * super().gradient(robot, data, q)

    neutral = robot.postures["neutral"]
    both_axes = MomentumTracking(robot, robot.joint_names[-4:], axes=(True, True, False))
    cases = [
        ({"objectives": [Own(neutral)]}, tasks),
        ({"objectives": [ComfortCost(neutral), ComfortCost(neutral)]}, tasks),
        ({"objectives": [ManipulabilityCost(robot, tasks[:1])]}, tasks),
        ({"momentum": both_axes}, tasks),
        ({}, [*tasks, PointTask(robot, "l_wrist", weight=0.0)]),  # no rows of its own
        ({}, [*tasks, tasks[0]]),  # rows that depend on each other
    ]
    tasks[0].target = tasks[0].target + [0.05, 0.02, 0.03]
    for options, given in cases:
        for task in given:
            if task.weight == 0.0:
                task.set_target_from(q)
        solver, plain = (ResolvedRate(robot, **options) for _ in range(2))
        a, b = solver.step(q + 0.01, given, DT), plain._step_by_step(q + 0.01, given, DT)
        assert not solver._data.waits, "this is no tick in one call"
        assert np.array_equal(a[1], b[1]) and a[2] == b[2] and np.abs(a[1]).max() > 0.1


def test_a_method_that_somebody_replaced_counts(monkeypatch):
    robot = load_robot("hrp2", "fixed")
    tasks, q = tasks_of(robot), robot.q()
    solver = ResolvedRate(robot, [ComfortCost(robot.postures["neutral"] + 0.1)])
    before = solver.step(q, tasks, DT)[1]
    monkeypatch.setattr(ComfortCost, "gradient", lambda self, robot, data, q: np.zeros(robot.nv))
    again = ResolvedRate(robot, solver.objectives).step(q, tasks, DT)[1]
    assert np.abs(before).max() > 1e-3 > 1e-9 > np.abs(again).max()


def test_what_is_no_number_holds_the_robot():
    robot = load_robot("lola", "floating")
    tasks, q = tasks_of(robot), robot.q()
    solver = ResolvedRate(robot)
    tasks[0].target = [np.nan, 0.0, 0.0]
    q_next, v, report = solver.step(q, tasks, DT)
    assert not report.ok and "not a number" in report.note and not v.any() and np.array_equal(q_next, q)


def test_a_copy_has_a_tick_of_its_own():
    robot = load_robot("hrp2", "fixed")
    tasks, q = tasks_of(robot), robot.q()
    tasks[1].target = tasks[1].target + 0.05
    solver = ResolvedRate(robot, [SelfCollisionCost(robot)])
    solver.step(q, tasks, DT)
    twin = copy.deepcopy(solver)
    expected = solver.step(q, tasks, DT)
    solver.objectives[0].contact[:] = 0.0
    for _ in range(2):
        assert np.array_equal(twin.step(q, tasks, DT)[0], expected[0])


def test_momentum_that_is_a_task_and_tracked_too():
    robot = load_robot("lola", "floating")
    momentum = MomentumTracking(robot, robot.joint_names[-4:])
    tasks = [*tasks_of(robot), AngularMomentumTask(axes=(True, False, False), weight=0.1)]
    tasks[0].target = tasks[0].target + [0.0, 0.05, 0.1]
    one, steps = ResolvedRate(robot, momentum=momentum), ResolvedRate(robot, momentum=momentum)
    a, b = one.step(robot.q(), tasks, DT), steps._step_by_step(robot.q(), tasks, DT)
    assert one._data.waits and np.allclose(a[1], b[1], atol=1e-9) and np.abs(a[1]).max() > 0.1
