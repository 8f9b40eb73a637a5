"""Joint angles from tendon lengths, with services ~/zero and ~/learn."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.estimation import CLOCK_BACK, ClockOffsets, JointFilter
from humanoid_control.nodes.base.messages import STREAM_OUT, fill_joint_state, joint_state, seconds, stamp_of
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.estimating.body_images import FollowedImage
from humanoid_control.nodes.estimating.tendon_reports import GroundTruthComparison, TendonOutputs, TendonReport
from humanoid_control.nodes.state_estimator_parameters import StateEstimatorParameters
from humanoid_control.robots import Robot
from humanoid_control.robots.tendons import tendon_geometry, tendon_groups, tendon_mappings
from humanoid_control.tendons import (
    AntagonismUpdater,
    EstimatorComparison,
    EstimatorSettings,
    NeuralMapping,
    TendonEstimator,
    TendonSamples,
)
from humanoid_control.tendons.estimator.plausibility import TendonPlausibility
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping
from humanoid_control.tendons.mappings.postures import random_postures

Mappings = dict[str, JointMuscleMapping]
ERROR_RATE = 50.0  # [Hz] maximum rate of ~/jae_error


def estimator_of(
    robot: Robot, p: StateEstimatorParameters, corrected: Callable[[Mappings], Mappings] | None = None
) -> TendonEstimator:
    """Return the selected estimator at its start posture.

    Path lengths are offset to zero at zero angles and need no calibration.

    Args:
        corrected: replaces the mappings of the groups.

    Raises:
        HumanoidError: if tendons, groups, mapping or posture are unusable.
    """
    settings = EstimatorSettings(
        p.mode,
        p.length_noise,
        p.step_noise,
        limits=p.limits,
        gate=p.gate,
        slack_tension=p.slack_tension,
        largest_step=0.0,  # `TendonPlausibility` checks samples by their times and the speed limits of the joints
    )
    groups = tendon_groups(robot, p.groups)
    mappings = tendon_mappings(robot, groups, Path(p.mapping).expanduser() if p.mapping else None)
    if corrected is not None:
        mappings = corrected(mappings)
    return _started(TendonEstimator(groups, mappings, settings), robot, p)


def partner_of(estimator: TendonEstimator, robot: Robot, p: StateEstimatorParameters) -> TendonEstimator:
    """Return a relative (r2) estimator for an absolute one, and vice versa, with shared mappings."""
    observation = "r2" if p.mode == "absolute" else "absolute"
    mappings = {f.group.name: f.mapping for f in estimator.filters}
    settings = replace(estimator.settings, observation=observation)
    return _started(TendonEstimator(estimator.groups, mappings, settings), robot, p)


def _started(estimator: TendonEstimator, robot: Robot, p: StateEstimatorParameters) -> TendonEstimator:
    start(estimator, robot, p)
    if p.lengths == "path":
        geometry = tendon_geometry(robot)
        order = [geometry.tendon_names.index(name) for name in estimator.muscle_names]
        estimator.zero(geometry.zero[order], dict.fromkeys(estimator.joint_names, 0.0))
    return estimator


def start(estimator: TendonEstimator, robot: Robot, p: StateEstimatorParameters) -> None:
    """Reset the estimate to the start posture; keep the calibration."""
    estimator.reset(_angles(estimator, robot, p.start_posture, "start_posture"))


def zero_angles(estimator: TendonEstimator, robot: Robot, text: str) -> dict[str, float]:
    """Return the calibration angles of ~/zero by joint; 'estimate' selects the current ones.

    Raises:
        UnknownNameError: see `posture_of`.
        ConfigError: see `posture_of`.
    """
    if text == "estimate":
        return dict(zip(estimator.joint_names, estimator.theta.tolist(), strict=True))
    return _angles(estimator, robot, text, "zero_posture")


def _angles(estimator: TendonEstimator, robot: Robot, text: str, parameter: str) -> dict[str, float]:
    posture = posture_of(robot, text, parameter)
    return {name: float(posture[robot.joint_index(name)]) for name in estimator.joint_names}


def posture_of(robot: Robot, text: str, parameter: str) -> np.ndarray:
    """Return joint angles (n,) [rad] of a posture, or of 'joint=angle,...' from neutral.

    Raises:
        UnknownNameError: if the posture or joint is unknown.
        ConfigError: if an angle is not a number or outside its limits.
    """
    if "=" not in text:
        if text not in robot.postures:
            raise UnknownNameError(f"posture in {parameter}", text, robot.postures)
        return robot.postures[text].copy()
    out = robot.postures["neutral"].copy()
    for part in (t for t in text.split(",") if t.strip()):
        name, _, value = (t.strip() for t in part.partition("="))
        k = robot.joint_index(name)
        try:
            out[k] = float(value)
        except ValueError:
            raise ConfigError(f"{parameter}: angle of {name} must be a number in radians, got '{value}'") from None
        if not robot.lower[k] <= out[k] <= robot.upper[k]:
            raise ConfigError(
                f"{parameter}: {name} at {out[k]:g} rad is outside its limits {robot.lower[k]:.3g} .. "
                f"{robot.upper[k]:.3g}"
            )
    return out


class PairedEstimation:
    """Parallel absolute and relative estimation, with their difference `~/jae_error`.

    The error is relative minus absolute (Kawaharazuka 2018, section V-B).

    Attributes:
        partner: the second estimator, with the mappings of the first.
    """

    def __init__(self, node: TickNode, robot: Robot, estimator: TendonEstimator, p: StateEstimatorParameters) -> None:
        self.node, self.robot, self._params = node, robot, p
        self.partner = partner_of(estimator, robot, p)
        absolute = p.mode == "absolute"
        self._pair = EstimatorComparison(*((estimator, self.partner) if absolute else (self.partner, estimator)))
        self._names = self._pair.reference.joint_names
        self._message = joint_state(self._names)
        self._publisher = node.create_publisher(JointState, "~/jae_error", STREAM_OUT)
        self._next, self._new = 0.0, False

    @property
    def error(self) -> Array:
        """Relative minus absolute estimate (J,) [rad]."""
        return self._pair.error

    def step(self, lengths: Array, tensions: Array | None) -> None:
        """Step both with lengths (M,) [m] and tensions (M,) [N]."""
        self._pair.step(lengths, tensions)
        self._new = True

    def reset(self) -> None:
        start(self.partner, self.robot, self._params)
        self._pair.error[:] = 0.0

    def slack_time(self) -> None:
        now = time.monotonic()
        if not self._new or now < self._next:
            return
        self._next, self._new = now + 1.0 / ERROR_RATE, False
        if self._publisher.get_subscription_count():
            stamp = stamp_of(self.node.present())
            self._publisher.publish(fill_joint_state(self._message, stamp, self.error))

    def values(self) -> dict[str, Any]:
        size = np.rad2deg(np.abs(self.error))
        worst = int(np.argmax(size))
        return {
            "jae_error_mean_deg": round(float(size.mean()), 3),
            "jae_error_max_deg": round(float(size[worst]), 3),
            "jae_error_max_joint": self._names[worst],
        }


# -------- From lengths to angles

UPDATE_PERIOD = 1.0  # [s] period of the corrections of a mapping
REPLAYED = 500  # postures at which the previous mapping is rehearsed
TOLD = 2.0  # [s] time for which a rejected sample stays reported
NAMED = 3  # tendons named in a report
HOLD_PERIODS, HOLD_TIME = 3.0, 0.05  # periods, minimum time [s] without a sample before the estimate is held


class TendonInput:
    """Input of the joint filter: angles estimated from `tendon_states`.

    Attributes:
        pair: comparison with an estimator of the other kind, or None.
        truth: comparison with true joint states, or None.
        estimated: mask of the estimated joints (n,).
        stamp: stamp of the last used sample [s].
        lengths: its lengths without wire stretch (M,) [m], in estimator order.
        tensions: its tensions (M,) [N], in estimator order.
    """

    topic = "tendon_states"

    def __init__(self, node: Any, robot: Robot, joint_filter: JointFilter) -> None:
        """Subscribe and create the services.

        Raises:
            HumanoidError: see `estimator_of`.
        """
        self.node, self.robot, self.filter, self.health = node, robot, joint_filter, node.health
        p, self._now, self.clocks = self.params, node.clock, ClockOffsets()
        self.image: FollowedImage | None = None
        self.estimator = estimator_of(robot, p, self._corrected if p.body_image else None)
        self.pair = PairedEstimation(node, robot, self.estimator, p) if p.side_by_side else None
        self.truth = GroundTruthComparison(node, self.estimator, p.compare) if p.compare else None
        names, m = self.estimator.muscle_names, len(self.estimator.muscle_names)
        self.samples = TendonSamples(names, 1.0 / p.tendon_rate, relative=p.lengths == "counted")
        self._joints = np.array([robot.joint_index(name) for name in self.estimator.joint_names])
        self.plausible = TendonPlausibility(self.estimator, robot.velocity[self._joints], p.lengths == "path")
        self.estimated = np.zeros(robot.n, dtype=bool)
        self.estimated[self._joints] = True
        self._measured, self._no_lengths = np.full(robot.n, np.nan), np.full(m, np.nan)
        for _ in range(self.estimator.settings.every + 2):
            self._estimate(self._no_lengths, None)  # loads compiled code before the first tick
        self.report, self.outputs = TendonReport(node, self.estimator), TendonOutputs(node, robot, self.estimator)
        self.services = TendonServices(node, self, robot)
        self.reset()
        node.listen(JointState, self.topic, self.on_tendon_states)

    def _corrected(self, mappings: Mappings) -> Mappings:
        p = self.params
        self.image = FollowedImage(self.node, tendon_geometry(self.robot), mappings, p.tendon_stiffness, p.body_image)
        return self.image.mappings

    def reset(self) -> None:
        """Return to the start posture, keeping calibration and counts."""
        start(self.estimator, self.robot, self.params)
        if self.pair is not None:
            self.pair.reset()
        self.samples.reset()
        self.plausible.reset()
        self.stamp: float | None = None
        self._used = self._sampled = 0.0
        self._odd = ("", -TOLD)  # last rejected tendons, time [s]
        self._dropped = self.samples.dropped
        self.lengths: Array = self._no_lengths.copy()
        self.tensions: Array | None = None

    def on_tendon_states(self, m: JointState) -> None:
        now, own = self._now(), seconds(m.header.stamp)
        stamp = self.clocks.time(self.topic, own, now, time.monotonic())
        if self.stamp is not None and stamp < self.stamp - CLOCK_BACK:
            self.samples.reset()
            self.plausible.reset()
        try:
            sample = self.samples.accept(stamp, m.name, m.position, m.effort, now)
            self.health.clear("sample")
        except HumanoidError as e:
            self.health.report("sample", Level.ERROR, str(e))
            return
        if sample is None:
            return
        self._dropped = self.samples.dropped
        p, lengths, k = self.params, sample.lengths, self.params.tendon_stiffness
        if k and sample.tensions is not None:
            lengths = lengths + np.nan_to_num(sample.tensions) / k
        if self.image is not None:
            lengths = self.image.paths(lengths, sample.tensions, self.estimator.muscle_names)
        if not self.plausible.check(stamp, lengths):
            lengths = self._no_lengths  # rejected: treated as a sample without any tendon
        zeros = [name for name, x in zip(m.name, m.position, strict=True) if x == 0.0 and p.lengths == "path"]
        more = f" and {len(zeros) - NAMED} more" if len(zeros) > NAMED else ""
        unread = f"tendons of length 0 were not measured: {', '.join(zeros[:NAMED])}{more}: ignored" if zeros else ""
        if text := self.plausible.problem or unread:
            self._odd = text, time.monotonic()
        shown = time.monotonic() - self._odd[1] < TOLD  # diagnostics are published once a second
        self.health.check("implausible", shown, Level.WARN, self._odd[0])
        self.stamp, self.lengths, self.tensions, self._sampled = stamp, lengths, sample.tensions, now
        self._step(stamp, lengths, sample.tensions)
        if self.truth is not None:
            self.truth.add(own)  # true joint states have stamps of the same clock
        self.outputs.markers.tensions = sample.tensions
        self.services.learn(lengths, sample.tensions)
        faults = self.estimator.faults
        if not (faults.missing | faults.slack | faults.excluded).all():
            self._used = now

    def shift(self, step: float) -> None:
        """Shift all stored times by `step` [s]."""
        self.clocks.shift(step)
        self.plausible.shift(step)
        self.samples.reset()
        self._used, self._sampled = self._used + step, self._sampled + step
        self.stamp = None if self.stamp is None else self.stamp + step

    def hold(self, stamp: float, now: float) -> None:
        """Hold the angles, with growing covariance, while no usable lengths arrive.

        Args:
            stamp: time of the node's clock [s].
            now: monotonic time [s].
        """
        self.health.check("uncalibrated", self.services.uncalibrated, Level.WARN, self.services.advice)
        if self.stamp is None:
            return
        waits = stamp - self._sampled > max(HOLD_PERIODS / self.params.tendon_rate, HOLD_TIME)
        if waits:
            self._step(stamp, self._no_lengths, None)
        held = stamp - self._used > self.params.timeout
        self.health.check("held", held, Level.ERROR, f"{self._reason()}: the estimate is held, its uncertainty grows")
        if held or not waits:
            self.report.update(now)

    def _reason(self) -> str:
        if self.samples.dropped > self._dropped:
            return "tendon samples are not newer than the previous ones: stamp each when it is measured"
        return "no tendon can be used"

    def _step(self, stamp: float, lengths: Array, tensions: Array | None) -> None:
        self._measured[self._joints] = self._estimate(lengths, tensions)
        self.report.add()
        if (velocity := self.plausible.velocity) is not None:
            for joint, v in zip(self._joints, velocity, strict=True):
                self.filter.restart(joint, stamp, self._measured[joint], v)
            self.plausible.velocity = None
        self.filter.update(stamp, self._measured)

    def _estimate(self, lengths: Array, tensions: Array | None) -> Array:
        if self.pair is None:
            return self.estimator.step(lengths, tensions)
        self.pair.step(lengths, tensions)
        return self.estimator.theta

    def slack_time(self, left: float) -> None:
        """Publish to subscribers and do deferred work."""
        self.outputs.slack_time(left, self.params.markers_rate)
        self.report.slack_time(left)
        self.services.slack_time()
        if self.pair is not None:
            self.pair.slack_time()

    @property
    def params(self) -> StateEstimatorParameters:
        assert isinstance(self.node.params, StateEstimatorParameters)
        return self.node.params

    def values(self) -> dict[str, Any]:
        counts = {f"samples_{k}": v for k, v in dataclasses.asdict(self.samples.counts).items()}
        error = self.pair.values() if self.pair is not None else {}
        truth = self.truth.values() if self.truth is not None else {}
        shown = {"mode": self.params.mode, **self.report.values(), **truth, **error}
        return {**shown, **counts, "learning": self.services.state}


class TendonServices:
    """Services ~/zero (calibrate) and ~/learn (correct neural mappings).

    Attributes:
        uncalibrated: absolute angles are requested, but the lengths have no known posture.
    """

    def __init__(self, node: TickNode, tendons: TendonInput, robot: Robot) -> None:
        self.node, self.tendons, self.robot = node, tendons, robot
        estimator = tendons.estimator
        self._learners: list[tuple[int, np.ndarray, AntagonismUpdater]] = []
        for k, f in enumerate(estimator.filters):
            if isinstance(f.mapping, NeuralMapping):
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
        return (
            "lengths count from an unknown posture, so absolute angles are wrong: put the robot into "
            f"'{self.tendons.params.zero_posture}' (zero_posture) and call {self.node.get_fully_qualified_name()}/zero"
        )

    @property
    def state(self) -> str:
        if not self._learners:
            return "not possible: no neural mapping"
        updates = sum(u.updates for *_, u in self._learners)
        return f"{'on' if self._learning else 'off'}, {updates} updates, misfit {1e3 * self._misfit:.2f} mm"

    def on_zero(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Calibrate the last lengths to `zero_posture`."""
        t = self.tendons
        age = self.node.age(t.topic, time.monotonic())
        measured = np.isfinite(t.lengths)
        if t.stamp is None or age > t.params.timeout or not measured.any():
            response.success, response.message = False, "no tendon lengths are received: nothing to calibrate with"
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
        t.plausible.place()
        missing = [n for n, ok in zip(t.estimator.muscle_names, measured, strict=True) if not ok]
        words = f"{int(measured.sum())} tendons calibrated at '{text}'"
        words += f"; not measured: {', '.join(missing[:4])}" if missing else ""
        words += (
            "" if t.params.mode == "absolute" or t.pair else f"; mode {t.params.mode} uses only changes and needs none"
        )
        response.success, response.message = True, words
        return response

    def on_learn(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Start or stop the correction of neural mappings."""
        if not self._learners:
            response.success = False
            response.message = "only a neural mapping can learn: set the parameter mapping to its file"
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
        response.success, response.message = True, "learning" if self._learning else "frozen"
        return response

    def learn(self, lengths: Array, tensions: Array | None) -> None:
        if not self._learning:
            return
        for k, rows, updater in self._learners:
            f = self.tendons.estimator.filters[k]
            updater.add(f.theta, lengths[rows] + f.offset, None if tensions is None else tensions[rows])

    def slack_time(self) -> None:
        now = time.monotonic()
        if not self._learning or now - self._updated < UPDATE_PERIOD:
            return
        self._updated = now
        for *_, updater in self._learners:
            misfit = updater.update()
            self._misfit = misfit if np.isfinite(misfit) else self._misfit
