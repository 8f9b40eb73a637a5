"""A performer on its stage, in the simulated world, by its own sensors: it steps to its place, is stopped, falls."""

import numpy as np
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.performing import Stage, StageState, approach, check_performer, make_feasible
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.simulation.noisy_sensors import NOISE, NoisySensors
from test.performing.pieces import piece, retargeted_dance


@pytest.fixture(scope="module")
def dance():
    robot = load_robot("hrp2", "floating")
    return robot, make_feasible(piece(retargeted_dance(robot), 3.0, 6.0), robot)


class Show:
    """A stage with a world: ticks, and what was seen."""

    def __init__(self, robot, plan, tick=0.002):
        self.world = SimulationConfig(robot.name, "floating").build(load_robot(robot.name, "floating"))
        self.world.reset()
        self.world.step(300)  # its drives hold the neutral posture; the soles settle on the ground
        self.read, self.tick = NoisySensors(self.world, NOISE, 0).read, tick
        self.stage = Stage(robot, plan)
        self.torques, self.lowest = [], np.inf
        while (measured := self.read()) is None:
            self.world.step(2)
        self.stage.begin(measured)

    def run(self, seconds, until=None):
        for _ in range(round(seconds / self.tick)):
            torque = self.stage.step(self.read(), self.tick)
            if torque is not None:
                self.world.command(None, None, torque)
                self.torques.append(np.abs(torque).max())
            self.world.step(round(self.tick / 0.001))
            self.lowest = min(self.lowest, self.world.q[2])
            if until is not None and until():
                return True
        return until is None


@pytest.mark.nightly
def test_it_steps_to_its_place_is_stopped_on_both_feet_and_performs_again(dance):
    robot, motion = dance
    show = Show(robot, approach(robot, robot.q("neutral"), motion))
    stage, lead = show.stage, (len(show.stage.plan) - len(motion)) / motion.rate
    show.run(0.5)
    assert stage.state == StageState.STAND and stage.controller.clock == 0.0
    assert stage.start() and not stage.start() and not stage.needs_plan
    swings = np.flatnonzero(~stage.plan.stands[round((lead + 1) * 100) :].all(axis=1))
    into = lead + 1 + swings[5] / 100  # in mid-step
    assert show.run(into + 2.0, lambda: stage.controller.clock > into)
    assert stage.stop() and stage.state == StageState.STOP and not stage.stop()
    assert show.run(4.0, lambda: stage.state == StageState.STAND) and stage.needs_plan
    assert not stage.start(), "its end is no beginning"
    rests = show.world.q[:2].copy()
    show.run(0.5)
    assert np.linalg.norm(show.world.q[:2] - rests) < 0.01 and stage.performed == 0
    assert stage.give(approach(robot, stage.configuration, motion)) and stage.start()
    assert show.run(12.0, lambda: stage.state == StageState.STAND) and stage.performed == 1
    assert show.lowest > 0.55 and stage.why == "" and stage.controller.failed == 0
    assert (np.array(show.torques) <= robot.effort.max() + 1e-9).all()


def test_ticks_that_stand_for_more_time_keep_its_pace(dance):
    """On a machine that is too slow every other reading is missed: the motion takes as long as it should."""
    robot, motion = dance
    show = Show(robot, approach(robot, robot.q("neutral"), motion), tick=0.006)
    assert show.stage.start()
    show.run(2.0)
    assert show.stage.controller.clock == pytest.approx(2.0, abs=0.06) and show.lowest > 0.55
    assert show.stage.state == StageState.PERFORM


def test_a_fall_is_seen_by_its_own_sensors_and_ends_all_torques(dance):
    robot, motion = dance
    show = Show(robot, approach(robot, robot.q("neutral"), motion))
    show.stage.start()
    show.run(0.2)
    show.world.push(robot.root_link, np.array([900.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 0.3)
    assert show.run(4.0, lambda: show.stage.state == StageState.FALLEN)
    assert "degrees" in show.stage.why or "height" in show.stage.why
    assert show.stage.step(show.read(), 0.002) is None and not show.stage.start()


def test_a_robot_that_cannot_perform_is_refused_by_name():
    with pytest.raises(RobotError, match="has a fixed base"):
        check_performer(load_robot("hrp2", "fixed"))
    robot = load_robot("hrp2", "floating")
    check_performer(robot)
    robot.effort_known[:4] = False
    first = ", ".join(robot.joint_names[:3])
    with pytest.raises(RobotError, match=f"hrp2: no torque limit is known for {first} and 1 more: add it to the URDF"):
        check_performer(robot)
