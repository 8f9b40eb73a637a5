"""A learned tracker of others as a performer: TWIST2 on a Unitree G1, with the drives and gains of its makers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.paths import share_dir, test_data
from humanoid_control.performing import DynamicMotion
from humanoid_control.performing.performance import TICK
from humanoid_control.policy import Motion, MotionReference, RobotState, load_policy
from humanoid_control.policy.baselines import Unlimited
from humanoid_control.policy.runner import Command, PolicyTargets
from humanoid_control.robots import load_robot
from humanoid_control.simulation import Engine

NETWORK = "policies/twist2/twist2_1017_20k.onnx"  # of $HUMANOID_TEST_DATA
BLEND = 1.0  # [s] in which the tracker goes from its idle posture to the motion


class TrackerPerformer:
    """The tracker: true states in, torques of its PD loops out. The motion's first posture is held while it blends."""

    def __init__(self, name: str, motion: DynamicMotion) -> None:
        """Load its network.

        Raises:
            ConfigError: its network is not on this machine, or it drives another robot.
        """
        network = test_data(NETWORK)
        if network is None:
            raise ConfigError("TWIST2's network is not here: HUMANOID_TEST_DATA names its folder")
        robot = load_robot(name, "floating")
        self.policy = load_policy(str(share_dir() / "config" / "policies" / "twist2.yaml"), robot, network)
        joints = self.policy.model.joints
        if not isinstance(self.policy.reference, MotionReference) or not set(joints) <= set(motion.joint_names):
            raise ConfigError(f"TWIST2 does not drive {name}")
        own = [motion.joint_names.index(j) for j in joints]
        # What it blends over is the posture at rest before the clip begins.
        first = round(BLEND * motion.rate)
        self.given = Motion(motion.rate, motion.q[first:, :3], motion.q[first:, 3:7], motion.q[first:, 7:][:, own])
        self.limiter, self.every = Unlimited(robot), round(self.policy.period / TICK)
        self._targets: PolicyTargets | None = None
        self._times, self._tick = list[float](), 0

    def start(self, engine: Engine) -> None:
        """See `Performer.start`."""
        self.policy.reset()
        assert isinstance(self.policy.reference, MotionReference)
        self.policy.reference.follow(self.given)
        self._tick = 0

    def tick(self, t: float, engine: Engine) -> None:
        """See `Performer.tick`."""
        if self._tick % self.every == 0:
            begin = time.process_time()
            pose, twist = engine.base_state()
            state = RobotState(
                engine.joints.copy(), engine.joint_velocity.copy(), pose[3:], twist[3:], pose[:3], twist[:3]
            )
            self._targets = self.policy.step(state, Command())
            self._times.append(time.process_time() - begin)
        self._tick += 1
        assert self._targets is not None
        engine.command(efforts=self.limiter.torque(self._targets, engine.joints, engine.joint_velocity))

    def numbers(self) -> dict[str, Any]:
        """See `Performer.numbers`: times are of the network, at 50 Hz."""
        times = 1000 * np.array(self._times or [0.0])
        return {
            "tick_ms": round(float(np.median(times)), 2),
            "tick_p99_ms": round(float(np.percentile(times, 99)), 2),
        }
