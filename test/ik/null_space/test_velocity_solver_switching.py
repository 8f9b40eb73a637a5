"""Tasks that come and go while the robot moves: no jump of velocity, bounded acceleration and jerk."""

from functools import cache

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.ik import DofSelection, FramePoint, PlaneTask, PointTask, lola_tasks
from humanoid_control.ik.null_space import ComfortCost, Hierarchy, ResolvedRate, SolverSettings, SwitchSettings
from humanoid_control.ik.tasks import prepare
from humanoid_control.numerics.minimum_jerk import PEAK_ACCELERATION, PEAK_SPEED, minimum_jerk
from humanoid_control.robots import load_robot
from test.robots_under_test import nightly

DT = 0.002


def run(cls, switch, script, steps=900):
    """Left hand on a circle; script(k) -> whether the elbow's height is a task too. Velocities, errors of the hand."""
    robot = load_robot("hrp2", "fixed")
    q = robot.q(robot.from_mapping({"l_elbow_flexion": 1.2, "l_shoulder_abduction": 0.5}))
    hand = PointTask(robot, "l_wrist", gain=20.0, name="hand")
    elbow = PlaneTask(
        robot, FramePoint(robot, robot.point_frame("l_elbow")), (0, 0, 1.05), (0, 0, 1), gain=4.0, name="elbow"
    )
    start = robot.frame_positions(q, [robot.point_frame("l_wrist")])[0]
    held = [n for n in robot.joint_names if not n.startswith(("l_shoulder", "l_elbow", "waist"))]
    comfort = ComfortCost(robot.postures["neutral"], 1.0)
    solver = cls(robot, [comfort], SolverSettings(switch=switch), DofSelection(robot, held))
    vs, errors = [], []
    for k in range(steps):
        t, w = k * DT, 3.0
        hand.target = start + 0.05 * np.array([np.sin(w * t), 1 - np.cos(w * t), 0.0])
        hand.velocity = 0.05 * w * np.array([np.cos(w * t), np.sin(w * t), 0.0])
        prepare(robot, solver.data, q)
        errors.append(np.linalg.norm(hand.error(robot, solver.data, q)))
        q, v, _ = solver.step(q, [hand, elbow] if script(k) else [hand], DT)
        vs.append(v)
    return np.array(vs), np.array(errors)


@cache
def circle(cls, switch):
    """Velocities of the hand's task alone."""
    return run(cls, switch, lambda k: False)[0]


SCRIPTS = {"comes": lambda k: k >= 300, "goes": lambda k: 150 <= k < 500, "flickers": lambda k: (k // 60) % 2 == 1}


@pytest.mark.parametrize("cls", [nightly(ResolvedRate), Hierarchy], ids=lambda c: c.__name__)
@pytest.mark.parametrize("script", ["comes", nightly("goes"), "flickers"])
def test_velocity_does_not_jump_when_a_task_comes_or_goes(script, cls):
    """F-26. Beside the same motion without the ramp, which jumps by whole radians per second."""
    smooth = SwitchSettings(acceleration=20.0, jerk=400.0)
    v, errors = run(cls, smooth, SCRIPTS[script])
    jumpy, errors_jumpy = run(cls, None, SCRIPTS[script])
    steady = circle(cls, smooth)
    own = np.abs(np.diff(steady[3:], axis=0)).max() / DT  # what the circle itself asks for
    acceleration = np.abs(np.diff(v[3:], axis=0)).max() / DT
    assert np.abs(np.diff(jumpy[3:], axis=0)).max() / DT > 200
    assert acceleration < 20.0 + 2 * own + 5, f"{acceleration:.1f} rad/s^2, the circle alone {own:.1f}"
    jerk = np.abs(np.diff(v[3:], 2, axis=0)).max() / DT**2
    # A change in the middle of a ramp keeps the velocity, not the acceleration.
    assert jerk < (3000 if script != "flickers" else 20.0 / DT)
    assert np.abs(np.diff(jumpy[3:], 2, axis=0)).max() / DT**2 > 1e5
    assert errors[50:].max() < 1.5 * errors_jumpy[50:].max() + 1e-6, "the hand stays on its circle throughout"


def test_after_the_ramp_the_motion_is_that_of_the_new_tasks():
    v, _ = run(ResolvedRate, SwitchSettings(), SCRIPTS["comes"], 2400)
    w, _ = run(ResolvedRate, None, SCRIPTS["comes"], 2400)
    assert np.allclose(v[-100:], w[-100:], atol=2e-2)


def test_arm_tasks_of_lola_leave_and_return_without_a_jump():
    """Table 4.2 with removable rows: both arms dropped while they move, and taken up again.

    What the rows of an arm ask for is done to the last digit while they are in, but for the ramp, and not while they
    are out. The ramp of the return takes 0.497 s, by its acceleration: until tick 749.
    """
    robot = load_robot("lola", "floating")
    biped = lola_tasks(robot, gain=10.0)
    dofs, q = DofSelection(robot, biped.held), robot.q()
    peaks = {}
    for name, switch in (("ramp", SwitchSettings(10.0, 200.0)), ("none", None)):
        solver, q, vs = ResolvedRate(robot, [], SolverSettings(switch=switch), dofs), robot.q(), []
        biped.take_targets(q)
        for k in range(900):
            t = k * DT
            for arm in ("left_arm", "right_arm"):
                biped.tasks[arm].velocity = np.array([0.3 * np.cos(6 * t), 0.0, 0.0])
            gone = 200 <= k < 500
            prepare(robot, solver.data, q)
            asked = [biped.tasks[arm].rows(robot, solver.data, q) for arm in ("left_arm", "right_arm")]
            q, v, _ = solver.step(q, biped.without("left_arm", "right_arm") if gone else biped.all(), DT)
            vs.append(v)
            missed = [np.abs(J @ v - xdot).max() for J, xdot in asked]
            if k < 200 or k >= 760:
                assert max(missed) < 1e-9, "the arms do what they are asked"
            elif 350 <= k < 500 and max(np.abs(xdot).max() for _, xdot in asked) > 0.1:
                assert min(missed) > 0.05, "the arms are free"
            prepare(robot, solver.data, q)
            feet = biped.tasks["left_foot_position"], biped.tasks["right_foot_position"], biped.tasks["center_of_mass"]
            assert all(np.abs(f.error(robot, solver.data, q)).max() < 2e-4 for f in feet), "the feet never notice"
        peaks[name] = np.abs(np.diff(vs[3:], axis=0)).max() / DT
    assert peaks["none"] > 100 and peaks["ramp"] < 40


def test_the_ramp_has_the_slope_and_curvature_that_the_ramp_time_counts_with():
    x = np.linspace(0, 1, 20001)
    y = minimum_jerk(x)
    assert y[0] == 0 and y[-1] == 1 and np.all(np.diff(y) >= 0)
    assert np.max(np.diff(y)) / x[1] == pytest.approx(PEAK_SPEED, rel=1e-4)
    assert np.max(np.abs(np.diff(y, 2))) / x[1] ** 2 == pytest.approx(PEAK_ACCELERATION, rel=1e-3)
    s = SwitchSettings(20.0, 400.0, 2.0)
    for jump in (0.1, 1.0, 5.0):
        T = s.ramp_time(jump)
        assert T == 2.0 or (
            jump * PEAK_SPEED / T <= 20.0 * (1 + 1e-9) and jump * PEAK_ACCELERATION / T**2 <= 400.0 * (1 + 1e-9)
        )
    assert s.ramp_time(1e6) == 2.0


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="must be positive"):
        SwitchSettings(acceleration=0)
