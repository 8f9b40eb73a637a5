"""Closed loop of a tendon controller and a simulated robot on winches, for tests."""

import numpy as np

from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry, tendon_groups, tendon_mappings
from humanoid_control.simulation.drives.winches import units_of
from humanoid_control.simulation.engine import make_engine
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.tendons import EstimatorSettings, TendonEstimator
from humanoid_control.tendons.control.laws import JointReference, TendonController, reference_at
from humanoid_control.tendons.control.settings import TendonControllerSettings

PERIOD = 0.004  # [s]


class Loop:
    """Kengoro's upper body under one law, on angles estimated from absolute lengths, or on the true ones.

    Attributes:
        theta: (D,) true angles. angles: (D,) those that the controller has. control, world: the two sides.
    """

    def __init__(self, law="hybrid", estimated=False, settings=None, **world):
        self.robot = load_robot("kengoro_upper", "fixed")
        self.geometry = g = tendon_geometry(self.robot)
        self.world = make_engine(self.robot, "multibody", WorldSettings(drives="winches", **world))
        units = units_of(self.robot)
        self.stiffness = np.array([u.stiffness for u in units])
        self.control = TendonController(
            self.robot.model, g, units, settings or TendonControllerSettings(law), held=self.robot.q("neutral")
        )
        self.order = [self.robot.joint_index(n) for n in g.joint_names]
        self.rng, self.estimator = np.random.default_rng(1), None
        if estimated:
            groups = tendon_groups(self.robot)
            self.estimator = TendonEstimator(
                groups, tendon_mappings(self.robot, groups), EstimatorSettings("absolute", slack_tension=4.0)
            )
            e = self.estimator
            self.tendons = [g.tendon_names.index(t) for t in e.muscle_names]
            self.joints = [e.joint_names.index(n) for n in g.joint_names]
        for _ in range(30):
            states = self.measure()
        self.control.reset(self.angles, states)

    @property
    def theta(self):
        return self.world.joints[self.order]

    def measure(self):
        """States with 0.1 mm and 1 N of noise; `angles` follow."""
        s, m = self.world.winch_states(), len(self.stiffness)
        s = s._replace(
            wire=s.wire + 1e-4 * self.rng.standard_normal(m),
            tension=np.maximum(0, s.tension + self.rng.standard_normal(m)),
        )
        self.angles = self.theta
        if self.estimator is not None:
            lengths = s.wire + s.tension / self.stiffness - self.geometry.zero
            self.angles = self.estimator.step(lengths[self.tendons], s.tension[self.tendons])[self.joints].copy()
        return s

    def tick(self, reference):
        """Let one period pass; the command."""
        states = self.measure()
        command = self.control.step(reference, self.angles, states, PERIOD)
        self.world.set_tendon_commands(command)
        self.world.step(round(PERIOD / self.world.settings.step))
        return command

    def rest(self, seconds, theta=None):
        """Hold a posture; errors (T, D) [deg]."""
        theta = self.control.reference.copy() if theta is None else theta
        rows = []
        for _ in range(round(seconds / PERIOD)):
            self.tick(reference_at(theta))
            rows.append(np.degrees(self.theta - theta))
        return np.array(rows)

    def move(self, goal, seconds=1.0):
        """Move by a polynomial of fifth degree; errors (T, D) [deg]."""
        start, rows = self.control.reference.copy(), []
        for k in range(round(seconds / PERIOD)):
            t = k * PERIOD / seconds
            share, rate, bend = (
                10 * t**3 - 15 * t**4 + 6 * t**5,
                30 * t**2 * (1 - t) ** 2,
                60 * t - 180 * t**2 + 120 * t**3,
            )
            d = goal - start
            self.tick(JointReference(start + share * d, rate * d / seconds, bend * d / seconds**2, np.zeros(len(d))))
            rows.append(np.degrees(self.theta - (start + share * d)))
        return np.array(rows)
