"""What the estimator of tendons publishes while somebody listens: the covariance and the markers of the tendons."""

from __future__ import annotations

import time

import numpy as np
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.messages import floats
from humanoid_control.nodes.qos import STREAM_OUT
from humanoid_control.nodes.tendon_markers import TendonMarkers
from humanoid_control.robots import Robot
from humanoid_control.tendons.tendon_estimator import TendonEstimator

RATE = 50.0  # [Hz] of the covariance at most


class TendonOutputs:
    """Publishes `~/covariance` and `tendon_markers` between ticks."""

    def __init__(self, node: TickNode, robot: Robot, estimator: TendonEstimator) -> None:
        self.estimator = estimator
        self.markers = TendonMarkers(node, robot, estimator)
        self._covariance = node.create_publisher(Float64MultiArray, "~/covariance", STREAM_OUT)
        n = len(estimator.joint_names)
        names = ",".join(estimator.joint_names)
        self._message = Float64MultiArray()
        self._message.layout.dim = [
            MultiArrayDimension(label=names, size=n, stride=n * n),
            MultiArrayDimension(label=names, size=n, stride=n),
        ]
        self._own = [np.array([estimator.joint_names.index(j) for j in g.own]) for g in estimator.groups]
        self._next = 0.0

    def covariance(self) -> np.ndarray:
        """(J, J) covariance of the estimated joints [rad^2]; between joints of different groups nothing is known."""
        n = len(self.estimator.joint_names)
        out = np.zeros((n, n))
        for f, own in zip(self.estimator.filters, self._own, strict=True):
            out[np.ix_(own, own)] = f.P[: len(own), : len(own)]
        return out

    def spare(self, left: float, markers_rate: float) -> None:
        """Publish what somebody listens to; left: time to the next tick [s], markers_rate [Hz]."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1.0 / RATE
            if self._covariance.get_subscription_count():
                self._message.data = floats(self.covariance().ravel())
                self._covariance.publish(self._message)
        self.markers.spare(left, markers_rate)
