"""A feasible motion danced open loop in two engines, and what is measured of it."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.performing import FeasibilitySettings, OpenLoop, make_feasible, perform, retargeted_motion
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from test.performing.pieces import piece, retargeted_dance

BRIEF = FeasibilitySettings(hold=0.3)  # of the first and of the last posture


@pytest.fixture(scope="module")
def dance():
    robot = load_robot("hrp2", "floating")
    return robot, piece(retargeted_dance(robot), 3.0, 6.0)


@pytest.fixture(scope="module")
def motion(dance):
    return make_feasible(dance[1], dance[0], BRIEF)


def world(robot, engine="multibody", **changed):
    return SimulationConfig(robot.name, "floating", engine, **changed).build(robot)


@pytest.fixture(scope="module")
def danced(dance, motion):
    """What becomes of it in our own engine."""
    return perform(motion, world(dance[0]), OpenLoop(motion))


@pytest.mark.parametrize("engine", ["multibody", "mujoco"])
def test_without_any_balance_it_is_danced_to_the_end(dance, motion, danced, engine):
    if engine == "mujoco":
        pytest.importorskip("mujoco")
    outcome = danced if engine == "multibody" else perform(motion, world(dance[0], engine), OpenLoop(motion))
    assert outcome.survived and outcome.why == ""
    assert outcome.made == outcome.placed == outcome.steps >= 4 and outcome.on_beat >= outcome.steps - 1
    assert outcome.slip < 0.02 and np.degrees(outcome.tilt) < 5 and outcome.tracking[0] < 0.005
    assert outcome.tracking[1] < 0.04


def test_the_same_motion_is_performed_the_same(dance, motion, danced):
    again = perform(motion, world(dance[0]), OpenLoop(motion))
    assert all(np.array_equal(danced.traces[k], again.traces[k]) for k in danced.traces)


class Limp:
    """Performer without any torque."""

    def start(self, engine):
        self.n = engine.robot.n

    def tick(self, t, engine):
        engine.command(None, None, np.zeros(self.n))


def test_a_robot_that_falls_is_seen_and_said(dance, motion):
    outcome = perform(motion, world(dance[0]), Limp())
    assert not outcome.survived and 0.2 < outcome.fell < 2.0
    assert outcome.why.startswith(("the root leans by", "the root is at"))
    assert outcome.steps == outcome.made == 0 and outcome.row()["fell_s"] == pytest.approx(outcome.fell, abs=0.01)


def test_the_slip_is_the_longest_way_of_a_flat_loaded_sole(dance, motion, danced):
    """On ice it slips; the way is found again from the traces, contact by contact."""
    icy, plain = perform(motion, world(dance[0], friction=0.08), OpenLoop(motion)), danced
    assert icy.slip > 2 * plain.slip or not icy.survived
    load, place, longest = plain.traces["load"], plain.traces["place"], 0.0
    for f in (0, 1):
        start = None
        for k in range(len(load)):
            frame = min(round((k + 1) * 0.002 * motion.rate), len(motion) - 1)
            if not (motion.stands[frame, f] and not motion.toe_only[frame, f] and load[k, f] > 0.2):
                start = None
                continue
            start = place[k, f, :2] if start is None else start
            longest = max(longest, float(np.linalg.norm(place[k, f, :2] - start)))
    assert plain.slip == pytest.approx(longest, abs=1e-12) and longest > 1e-4


def test_the_retargeted_motion_is_worse(dance, motion, danced):
    robot, trajectory = dance
    plain = retargeted_motion(trajectory, robot, BRIEF)
    assert plain.fallback == "the retargeted motion" and len(plain) == pytest.approx(len(motion), abs=60)
    other = perform(plain, world(robot), OpenLoop(plain))
    assert other.tracking[1] > 1.5 * danced.tracking[1] or not other.survived


def test_a_motion_of_another_robot_is_refused(motion):
    with pytest.raises(ConfigError, match="cannot be performed by lola"):
        perform(motion, world(load_robot("lola", "floating")), OpenLoop(motion))
