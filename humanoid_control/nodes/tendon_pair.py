"""Absolute and relative estimation side by side: their difference, the JAEs-error of the source (section V-B)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState

from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.messages import fill_joint_state, joint_state
from humanoid_control.nodes.qos import STREAM_OUT
from humanoid_control.nodes.state_estimator_parameters import StateEstimatorParameters
from humanoid_control.nodes.tendon_setup import partner_of, start
from humanoid_control.robots import Robot
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.side_by_side import SideBySide
from humanoid_control.tendons.tendon_estimator import TendonEstimator

RATE = 50.0  # [Hz] of the message at most


class TendonPair:
    """Runs a second estimator on the same lengths and publishes `~/jae_error` while somebody listens.

    The second one is relative (r2) where the node's is absolute, and absolute where that is relative; the error is
    always relative minus absolute.

    Attributes:
        partner: the second estimator, with the mappings of the first.
    """

    def __init__(self, node: TickNode, robot: Robot, estimator: TendonEstimator, p: StateEstimatorParameters) -> None:
        self.node, self.robot, self._params = node, robot, p
        self.partner = partner_of(estimator, robot, p)
        absolute = p.mode == "absolute"
        self._pair = SideBySide(*((estimator, self.partner) if absolute else (self.partner, estimator)))
        self._names = self._pair.reference.joint_names
        self._message = joint_state(self._names)
        self._publisher = node.create_publisher(JointState, "~/jae_error", STREAM_OUT)
        self._next, self._new = 0.0, False

    @property
    def error(self) -> Array:
        """(J,) relative minus absolute estimate after the last step [rad]."""
        return self._pair.error

    def step(self, lengths: Array, tensions: Array | None) -> None:
        """One step of both with lengths (M,) [m] and tensions (M,) [N]."""
        self._pair.step(lengths, tensions)
        self._new = True

    def reset(self) -> None:
        """Put the second one back to the start posture too."""
        start(self.partner, self.robot, self._params)
        self._pair.error[:] = 0.0

    def spare(self) -> None:
        """Publish the error of the last step, between ticks."""
        now = time.monotonic()
        if not self._new or now < self._next:
            return
        self._next, self._new = now + 1.0 / RATE, False
        if self._publisher.get_subscription_count():
            stamp = self.node.get_clock().now().to_msg()
            self._publisher.publish(fill_joint_state(self._message, stamp, self.error))

    def values(self) -> dict[str, Any]:
        """Figures for diagnostics."""
        size = np.rad2deg(np.abs(self.error))
        worst = int(np.argmax(size))
        return {
            "jae_error_mean_deg": round(float(size.mean()), 3),
            "jae_error_max_deg": round(float(size[worst]), 3),
            "jae_error_max_joint": self._names[worst],
        }
