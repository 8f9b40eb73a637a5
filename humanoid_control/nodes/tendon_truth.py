"""How wrong the angles estimated from tendons are, where something else knows them: a simulator, or encoders."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState

from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.messages import seconds
from humanoid_control.tendons.filters.consistency import ChiSquareMean, nees
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.tendon_estimator import TendonEstimator

KEPT = 8  # estimates that wait for the truth of their time, and the other way round
SAME = 1e-6  # [s] stamps that are one
EVERY = 0.02  # [s] between comparisons


class TendonTruth:
    """Subscribes true joint states and compares them with the estimates of the same time stamp.

    Attributes:
        error: (J,) estimate minus truth at the last comparison [rad]; NaN for joints that the topic does not have.
    """

    def __init__(self, node: TickNode, estimator: TendonEstimator, topic: str) -> None:
        self.estimator = estimator
        self.error = np.full(len(estimator.joint_names), np.nan)
        self._own = [np.array([estimator.joint_names.index(j) for j in g.own]) for g in estimator.groups]
        self._estimates: deque[tuple[float, Array, list[Array]]] = deque(maxlen=KEPT)
        self._truths: deque[tuple[float, Array]] = deque(maxlen=KEPT)
        self._names: list[str] = []
        self._there = np.zeros(0, dtype=np.int64)
        self._nees, self._last = ChiSquareMean(), 0.0
        node.listen(JointState, topic, self._on_truth)

    def add(self, stamp: float) -> None:
        """Take in what is estimated now, from a sample of this time [s]."""
        if abs(stamp - self._last) < EVERY:
            return
        filters = self.estimator.filters
        blocks = [f.P[: len(own), : len(own)].copy() for f, own in zip(filters, self._own, strict=True)]
        self._estimates.append((stamp, self.estimator.theta.copy(), blocks))
        self._compare()

    def _on_truth(self, m: JointState) -> None:
        if len(m.position) != len(m.name):
            return
        if m.name != self._names:
            self._names = list(m.name)
            known = {name: k for k, name in enumerate(m.name)}
            self._there = np.array([known.get(j, -1) for j in self.estimator.joint_names])
        position = np.append(np.asarray(m.position, float), np.nan)
        self._truths.append((seconds(m.header.stamp), position[self._there]))
        self._compare()

    def _compare(self) -> None:
        for stamp, theta, blocks in self._estimates:
            truth = next((angles for t, angles in self._truths if abs(t - stamp) < SAME), None)
            if truth is None:
                continue
            self.error = theta - truth
            for own, P in zip(self._own, blocks, strict=True):
                if np.isfinite(self.error[own]).all():
                    self._nees.add(nees(self.error[own], P), len(own))
            self._last = stamp
            self._estimates.clear()
            return

    def values(self) -> dict[str, Any]:
        """Figures for diagnostics; the errors' ratio to what the filters expect is that since it was last asked."""
        size = np.rad2deg(np.abs(self.error))
        if np.isnan(size).all():
            return {"compared": "nothing: no joint state of a tendon sample's time"}
        mean, self._nees = self._nees, ChiSquareMean()
        worst = int(np.nanargmax(size))
        return {
            "nees_per_degree": round(mean.per_degree, 3),
            "error_mean_deg": round(float(np.nanmean(size)), 3),
            "error_max_deg": round(float(size[worst]), 3),
            "error_max_joint": self.estimator.joint_names[worst],
        }
