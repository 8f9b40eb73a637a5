"""After the warm-up nothing is left to compile for the first motion of another robot (2 s)."""

import numpy as np

from humanoid_control.ik.follower import TargetFollower
from humanoid_control.retargeting import POINTS, Retargeter, Targets
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.warm_up import inverse_kinematics, retargeting, simulation
from test.warm_up.test_walking import signatures


def compiled_by(run):
    before = signatures()
    run()
    return {name: n for name, n in signatures().items() if n != before.get(name, 0)}


def test_nothing_is_compiled_for_a_world_that_is_commanded():
    simulation.compile_kernels()
    assert simulation.compiled() and all(k.signatures for k in simulation.KERNELS)

    def run():
        for base in ("fixed", "floating"):
            world = SimulationConfig("hrp2", base).build()
            for _ in range(3):
                world.command(world.joints, np.zeros(len(world.joints)))
                world.step(2)
            assert np.isfinite(world.joints).all()

    assert compiled_by(run) == {}


def test_nothing_is_compiled_for_a_clip():
    retargeting.compile_kernels()
    assert retargeting.compiled() and all(k.signatures for k in retargeting.KERNELS)
    robot = load_robot("hrp2", "fixed")
    still = np.tile(robot.point_positions(robot.q("neutral"), POINTS), (5, 1, 1))

    def run():
        solver = Retargeter(robot)
        assert np.isfinite(solver.solve(Targets("still", 50.0, still, still, POINTS)).positions).all()
        solver.step(still[0], 0.02)

    assert compiled_by(run) == {}


def test_nothing_is_compiled_for_targets_that_are_followed():
    inverse_kinematics.compile_kernels()
    assert inverse_kinematics.compiled() and all(k.signatures for k in inverse_kinematics.KERNELS)
    robot = load_robot("hrp2", "fixed")
    posture = robot.postures["neutral"]
    wrists = robot.point_positions(robot.q("neutral"), ["l_wrist", "r_wrist"]) + [0.0, 0.0, 0.05]

    def run():
        follower = TargetFollower(robot)
        follower.start(posture)
        for k in range(50):
            now = 0.004 * k
            for name, point in zip(("l_wrist", "r_wrist"), wrists, strict=True):
                follower.update(name, point, None, now)
            assert follower.step(now, 0.004).ok

    assert compiled_by(run) == {}
