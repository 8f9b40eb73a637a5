"""Method 1 inside the solver's tick: the formula as printed, tasks untouched, less momentum than without."""

from functools import cache

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.ik import DofSelection, lola_tasks
from humanoid_control.ik.null_space import ComfortCost, MomentumTracking, ResolvedRate
from humanoid_control.ik.null_space.momentum_tracking import MODES, clamped, reducing_rates
from humanoid_control.ik.task_rows import stacked
from humanoid_control.ik.tasks import prepare
from humanoid_control.kinematics.centroidal import momentum_map
from humanoid_control.robots import load_robot

DT = 0.004
VERTICAL = (False, False, True)


@cache
def lola():
    return load_robot("lola", "floating")


def arms():
    return [n for n in lola().joint_names if "shoulder" in n or "elbow" in n]


def walking_legs(seed=0):
    """Lola's tasks without its arms, a posture near standing, and feet that should move past each other."""
    robot, rng = lola(), np.random.default_rng(seed)
    tasks = lola_tasks(robot)
    joints = robot.postures["neutral"] + 0.2 * rng.normal(size=robot.n)
    q = robot.q(np.clip(joints, robot.lower, robot.upper))
    tasks.take_targets(q)
    tasks.tasks["left_foot_position"].velocity = np.array([0.6, 0.0, 0.1])
    tasks.tasks["right_foot_position"].velocity = np.array([-0.6, 0.0, 0.0])
    return robot, q, tasks.without("left_arm", "right_arm"), DofSelection(robot, held=tasks.held)


@pytest.mark.parametrize("axes", [VERTICAL, (True, True, True)])
@pytest.mark.parametrize("mode", MODES)
def test_velocity_is_the_formula_with_projector_and_pseudo_inverse(mode, axes):
    """Eq. (7.3) with (7.8) and (7.9), the producing joints' momentum from the particular solution (E-21)."""
    reference = np.array([0.3, -0.2, 0.1])
    for seed in range(5):
        robot, q, tasks, dofs = walking_legs(seed)
        comfort = ComfortCost(robot.postures["neutral"], 0.7)
        tracking = MomentumTracking(robot, arms(), reference, axes, mode)
        v, report = ResolvedRate(robot, [comfort], dofs=dofs, momentum=tracking).velocity(q, tasks, DT)
        data = robot.model.createData()
        prepare(robot, data, q)
        rows = stacked(robot, data, q, tasks, dofs, 1 / DT)
        sharp = np.linalg.pinv(rows.J)
        task = dofs.expand(sharp @ rows.v)
        J_L = momentum_map(robot.model, robot.data, q).angular[list(axes)]
        reducing = [robot.iv + robot.joint_index(n) for n in arms()]
        others = task.copy()
        others[reducing] = 0.0
        y = comfort.gradient(robot, data, q)
        rates = reducing_rates(J_L[:, reducing], J_L @ others - reference[list(axes)], mode)
        y[reducing] += clamped(rates, 0.8 * robot.velocity[[robot.joint_index(n) for n in arms()]])
        null = dofs.expand((np.eye(dofs.k) - sharp @ rows.J) @ -dofs.reduce(y))
        assert report.speed_scale == 1.0 and report.ok
        assert np.allclose(v, task + report.null_scale * null, atol=1e-8)


def test_arms_take_momentum_away_and_leave_the_tasks_alone():
    robot, q, tasks, dofs = walking_legs()
    without, report = ResolvedRate(robot, dofs=dofs).velocity(q, tasks, DT)
    tracking = MomentumTracking(robot, arms(), mode="damped", mu=0.0)
    with_arms, tracked = ResolvedRate(robot, dofs=dofs, momentum=tracking).velocity(q, tasks, DT)
    L = momentum_map(robot.model, robot.data, q).angular[2]
    assert abs(L @ without) > 0.5, "the legs make momentum"
    assert abs(L @ with_arms) < 0.8 * abs(L @ without)
    assert report.unserved < 1e-9 and tracked.unserved < 1e-9


def test_a_full_task_vector_leaves_nothing_to_track_with():
    """With all 28 rows Lola has as many velocities as rows: momentum tracking changes nothing."""
    robot, q, _, dofs = walking_legs()
    tasks = lola_tasks(robot)
    plain = ResolvedRate(robot, dofs=dofs).velocity(q, tasks.all(), DT)[0]
    tracked = ResolvedRate(robot, dofs=dofs, momentum=MomentumTracking(robot, arms())).velocity(q, tasks.all(), DT)[0]
    assert np.allclose(plain, tracked, atol=1e-8)


def test_mistakes_are_named():
    with pytest.raises(UnknownNameError, match="did you mean thesis"):
        MomentumTracking(lola(), arms(), mode="thesys")
    with pytest.raises(UnknownNameError, match="l_elbow"):
        MomentumTracking(lola(), ["l_elbow_flexon"])
    with pytest.raises(ConfigError, match="axes"):
        MomentumTracking(lola(), arms(), axes=(False, False, False))
