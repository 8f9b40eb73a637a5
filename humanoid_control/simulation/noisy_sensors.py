"""Sensors of a simulated robot with errors, combined in one measurement."""

from __future__ import annotations

import numpy as np

from humanoid_control.kinematics.joint_state import ImuReading, JointState, Measurement
from humanoid_control.simulation.engine import Engine
from humanoid_control.simulation.sensors.sensor_model import Imperfection, Sensor

NOISE = Imperfection.from_texts(
    noise="position=0.0002,velocity=0.02,gyro=0.01,accel=0.1,orientation=0.002,force=1,torque=0.1",
    bias="orientation=0.005,accel=0.03",
    delay="0.002",
)
"""Errors of encoders, IMU and force sensors of a good humanoid, with a delay of 2 ms."""


class NoisySensors:
    """Joint, IMU and foot-wrench sensors with errors, each a `Sensor`.

    Attributes:
        engine: simulation of the robot.
        last: newest measurement.
    """

    def __init__(self, engine: Engine, model: Imperfection, seed: int) -> None:
        n = engine.robot.n
        self.engine = engine
        self.joints = Sensor("joint_states", (n, n, n), model, seed)
        self.imu = Sensor("imu", (4, 3, 3), model, seed)
        self.names = tuple(engine.foot_wrenches())
        self.feet = {name: Sensor("wrench", (3, 3), model, seed, name) for name in self.names}
        self.last: Measurement | None = None

    def sample(self) -> None:
        """Store the true values for delayed readings."""
        t, true = self.engine.time, self.engine.read()
        self.joints.sample(t, true.joints.q, true.joints.v, true.joints.effort)
        self.imu.sample(t, *true.imu)
        for n, w in true.foot_wrenches.items():
            self.feet[n].sample(t, w[:3], w[3:])

    def read(self) -> Measurement | None:
        """Return the measurement; a lost or delayed sample repeats the last one."""
        engine, t = self.engine, self.engine.time
        true = engine.read()
        joints = self.joints.read(t, true.joints.q, true.joints.v, true.joints.effort)
        imu = self.imu.read(t, *true.imu)
        feet = {n: self.feet[n].read(t, w[:3], w[3:]) for n, w in true.foot_wrenches.items()}
        if joints is None or imu is None or any(w is None for w in feet.values()):
            return self.last
        q, v, effort = joints
        state = JointState(true.joints.names, q, v, effort, t)
        self.last = Measurement(state, ImuReading(*imu), {n: np.concatenate(w) for n, w in feet.items() if w})
        return self.last
