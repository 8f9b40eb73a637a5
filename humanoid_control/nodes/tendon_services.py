"""Services of the state estimator for tendons: ~/zero calibrates at a known posture, ~/learn corrects the mapping."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from std_srvs.srv import SetBool, Trigger

from humanoid_control.errors import HumanoidError
from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.tendon_setup import zero_angles
from humanoid_control.robots import Robot
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.mappings.neural_mapping import NeuralMapping
from humanoid_control.tendons.mappings.posture_grid import random_postures

if TYPE_CHECKING:
    from humanoid_control.nodes.tendon_input import TendonInput
    from humanoid_control.tendons.antagonism import AntagonismUpdater

UPDATE = 1.0  # [s] between two corrections of a mapping
REPLAYED = 500  # postures at which the mapping is remembered


class TendonServices:
    """Offers ~/zero and ~/learn.

    Attributes:
        uncalibrated: absolute angles are asked for, but it is not known to which posture the lengths belong.
    """

    def __init__(self, node: TickNode, tendons: TendonInput, robot: Robot) -> None:
        self.node, self.tendons, self.robot = node, tendons, robot
        estimator = tendons.estimator
        self._learners: list[tuple[int, np.ndarray, AntagonismUpdater]] = []
        for k, f in enumerate(estimator.filters):
            if isinstance(f.mapping, NeuralMapping):
                from humanoid_control.tendons.antagonism import AntagonismUpdater

                replay = random_postures(f.mapping.limits, REPLAYED)
                rows = np.array([estimator.muscle_names.index(name) for name in f.group.tendons])
                tension = tendons.params.slack_tension
                self._learners.append((k, rows, AntagonismUpdater(f.mapping, replay, tension=tension)))
        self._learning, self._updated, self._misfit = False, 0.0, float("nan")
        p = tendons.params
        self.uncalibrated = p.lengths == "counted" and (p.mode == "absolute" or p.side_by_side)
        node.create_service(Trigger, "~/zero", self.on_zero)
        node.create_service(SetBool, "~/learn", self.on_learn)

    @property
    def advice(self) -> str:
        """What to do where lengths have to be calibrated first."""
        return (
            "lengths are counted from an unknown posture, absolute angles are wrong: put the robot into "
            f"'{self.tendons.params.zero_posture}' (zero_posture) and call {self.node.get_fully_qualified_name()}/zero"
        )

    @property
    def state(self) -> str:
        """What diagnostics say of learning."""
        if not self._learners:
            return "not possible: no neural mapping"
        updates = sum(u.updates for *_, u in self._learners)
        return f"{'on' if self._learning else 'off'}, {updates} updates, misfit {1e3 * self._misfit:.2f} mm"

    def on_zero(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Calibrate here: the lengths of the last sample belong to the posture of the parameter `zero_posture`."""
        t = self.tendons
        age = self.node.age(t.topic, time.monotonic())
        measured = np.isfinite(t.lengths)
        if t.stamp is None or age > t.params.timeout or not measured.any():
            response.success, response.message = False, "no tendon lengths come: nothing to calibrate with"
            return response
        text = t.params.zero_posture
        try:
            angles = zero_angles(t.estimator, self.robot, text)
            for e in (t.estimator,) if t.pair is None else (t.estimator, t.pair.partner):
                e.zero(t.lengths, angles)
        except HumanoidError as e:
            response.success, response.message = False, str(e)
            return response
        self.uncalibrated = False
        missing = [n for n, ok in zip(t.estimator.muscle_names, measured, strict=True) if not ok]
        words = f"{int(measured.sum())} tendons calibrated at '{text}'"
        words += f"; not measured: {', '.join(missing[:4])}" if missing else ""
        words += (
            "" if t.params.mode == "absolute" or t.pair else f"; mode {t.params.mode} uses changes alone and needs none"
        )
        response.success, response.message = True, words
        return response

    def on_learn(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Let neural mappings be corrected by what is measured, or freeze them as they are."""
        if not self._learners:
            response.success = False
            response.message = "only a neural mapping can learn: give the file of one in the parameter mapping"
            return response
        if request.data and self.tendons.params.mode != "absolute":
            response.success = False
            response.message = f"mode {self.tendons.params.mode} has no calibrated lengths to learn from: use absolute"
            return response
        if request.data and self.uncalibrated:
            response.success, response.message = False, self.advice
            return response
        self._learning = bool(request.data)
        for *_, updater in self._learners:
            updater.start() if self._learning else updater.stop()
        response.success, response.message = True, "learning" if self._learning else "frozen as it is"
        return response

    def learn(self, lengths: Array, tensions: Array | None) -> None:
        """Take the estimator's last step in, where learning is on."""
        if not self._learning:
            return
        for k, rows, updater in self._learners:
            f = self.tendons.estimator.filters[k]
            updater.add(f.theta, lengths[rows] + f.offset, None if tensions is None else tensions[rows])

    def spare(self, left: float) -> None:
        """Correct the mappings now and then, between ticks."""
        now = time.monotonic()
        if not self._learning or now - self._updated < UPDATE:
            return
        self._updated = now
        for *_, updater in self._learners:
            misfit = updater.update()
            self._misfit = misfit if np.isfinite(misfit) else self._misfit
