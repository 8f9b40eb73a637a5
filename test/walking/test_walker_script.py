"""The script of footsteps by which another walking controller is tested, with its criterion and with ours.

BaselineWalkingController (isri-aist) walks 19 steps in its continuous integration: forward, to the side, turning on the
spot, an arc; it passes where the trunk never tilts by more than 30 degrees and the base ends within 0.5 m. Here the
robot walks them by noisy sensors; its middle of the feet must end within 0.05 m and 3 degrees of tilt are the most.
The script also lowers the centre of mass by 0.1 m for a while, which is left out.
"""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.noisy_sensors import NOISE, NoisySensors
from humanoid_control.walking import Footstep, Walker, WalkState
from humanoid_control.walking.footsteps import middle_of

# Middle of the feet after each step, as x, y [m] and heading [rad]; feet alternate, the left one begins.
SCRIPT = (
    [(0.15, 0.0, 0.0), (0.30, 0.0, 0.0), (0.45, 0.0, 0.0), (0.60, 0.0, 0.0), (0.60, 0.0, 0.0)]
    + [(0.6, -0.1, 0.0), (0.6, -0.1, 0.0), (0.6, -0.2, 0.0), (0.6, -0.2, 0.0), (0.6, -0.3, 0.0)]
    + [(0.6, -0.3, 0.25), (0.6, -0.3, 0.50), (0.6, -0.3, 0.75)]
    + [(0.7779, -0.2709, 0.4882), (0.9104, -0.2006, 0.2264), (1.0790, -0.2643, -0.0354)]
    + [(1.2289, -0.2697, -0.2972), (1.3431, -0.4092, -0.5590), (1.3431, -0.4092, -0.5590)]
)


def true_middle(engine, walker):
    data = engine.robot.model.createData()
    pin.framesForwardKinematics(engine.robot.model, data, engine.q)
    return middle_of([data.oMf[f] for f in walker.feet.frames])


@pytest.mark.nightly
@pytest.mark.parametrize("count", [7, pytest.param(19, marks=pytest.mark.thorough)])
def test_steps_of_another_controller_end_ten_times_nearer_than_it_asks(count, name="lola"):
    """The first of them, forward and to the side (8 simulated seconds), and all (18)."""
    script = SCRIPT[:count]
    engine, walker = SimulationConfig(name, "floating").build(), Walker(load_robot(name, "floating"))
    engine.step(300)
    sensors, begin, tilt, followed, report = NoisySensors(engine, NOISE, 0), None, 0.0, False, None
    while walker.t < 25.0:
        engine.step(2)
        sensors.read()
        engine.step(2)
        if (measured := sensors.read()) is None:
            continue
        if not followed and walker.t > 1.0:
            followed, times = True, walker.settings.times
            middle, half = middle_of(walker.plan.soles(walker.t)), 0.5 * walker.planner.limits.width
            begin = true_middle(engine, walker)
            steps = []
            for k, (x, y, yaw) in enumerate(script):
                X = middle * pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw), np.array([x, y, 0.0]))
                X = X * pin.SE3(np.eye(3), np.array([0.0, half if k % 2 == 0 else -half, 0.0]))
                swing = (1 - times.double_support) * times.nominal
                steps.append(Footstep(k % 2, X, swing, times.double_support * times.nominal, times.lift))
            walker.follow(steps)
        report = walker.step(measured)
        assert report.state != WalkState.FALLEN, (report.why, report.steps)
        engine.command(walker.joints, walker.joint_velocity)
        up = pin.XYZQUATToSE3(engine.q[:7]).rotation @ engine.robot.X_world_root.rotation.T
        tilt = max(tilt, float(np.arccos(min(up[2, 2], 1.0))))
        if followed and report.steps >= len(script) and report.state == WalkState.STAND:
            break
    assert report.steps >= len(script) and report.state == WalkState.STAND, "those, and the steps that close the feet"
    end = begin.actInv(true_middle(engine, walker))
    off = float(np.hypot(end.translation[0] - script[-1][0], end.translation[1] - script[-1][1]))
    yaw = float(np.arctan2(end.rotation[1, 0], end.rotation[0, 0]))
    print(f"{name}: tilt {np.degrees(tilt):.2f} deg, off {1e3 * off:.0f} mm, {np.degrees(yaw - script[-1][2]):.1f} deg")
    assert tilt < np.radians(30.0) and off < 0.5, "theirs"
    assert tilt < np.radians(3.0) and off < 0.05 and abs(yaw - script[-1][2]) < np.radians(3.0), "ours"
