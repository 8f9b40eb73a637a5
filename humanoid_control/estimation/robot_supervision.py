"""Supervision of a commanded robot: presence, following, and the reaction to faults."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from humanoid_control.estimation.joint_supervision import JointFaultKind, JointSupervision, JointSupervisionLimits

LATE = 1.0  # [s] after late states, or the start, in which a displaced robot is not a fault
AGAIN = 5.0  # [s] unless it repeats, more than `tries` times in this period
BURST = 0.05  # [s] in which a burst of delayed states may look like a jump: 0.1 s at full speed
LOST_AFTER = 0.2  # [s] without states before a warning


class Verdict(Enum):
    """Action of the commander: continue, come to rest, or restart at the robot's posture."""

    MOVE = "move"
    HOLD = "hold"
    BEGIN = "begin"


class RobotSupervision:
    """Judge of a commanded robot by its joint states.

    A silent robot, or frozen time, is away: commands rest, and restart at its posture on return. A joint fault stops
    the robot until `~/resync`.

    Attributes:
        supervised: measured before the first command.
        away: silent or paused.
        stopped: by a joint fault.
        paused: simulated time stands still.
        tries: restarts before displacement is a fault.
        silence: message, or empty.
        fault: message, or empty.
        gone: silence beyond the timeout.
        worst: largest following error [rad] since `take_worst`, with its joint.
    """

    def __init__(
        self,
        names: Sequence[str],
        velocity: np.ndarray,
        topic: str = "joint states",
        ranges: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Create the supervision with default limits.

        Args:
            velocity: (n,) speed limits [rad/s].
            topic: of the states, for messages.
            ranges: lower and upper (n,) limits [rad]; see `JointSupervision`.
        """
        self._topic, self._joints = topic, JointSupervision(names, velocity, ranges=ranges)
        self._late = -np.inf  # time of late states [s]
        self._elsewhere: list[float] = []  # recent times at which the robot was displaced [s]
        self._began = np.inf  # first judgement since the first command [s]
        self._timeout, self._stops = 0.5, True
        self.paused, self.tries, self.worst = False, 1, ("", 0.0)
        self.silence = self.fault = ""
        self.reset()

    def configure(self, following_error: float, timeout: float) -> None:
        """Set the limits.

        Args:
            following_error: [rad]; 0: joint faults do not stop the robot.
            timeout: silence before the robot is away [s].
        """
        self._timeout, self._stops = timeout, following_error > 0
        self._joints.limits = JointSupervisionLimits(
            following_error or np.inf, silence=timeout + LOST_AFTER, jump_time=BURST
        )

    def reset(self) -> None:
        """End supervision."""
        self.supervised = self.away = self.stopped = self.gone = False

    def begin(self, known: bool) -> None:
        """Start before the first command; only a `known`, measured posture is supervised."""
        self.silence = self.fault = ""
        self._joints.restart()
        self.supervised, self._began = known, np.inf

    def restart(self) -> None:
        """Discard commands and measurements."""
        self._joints.restart()

    def measure(self, now: float, joints: np.ndarray, positions: np.ndarray, stamp: float | None) -> None:
        """Process joint states; see `JointSupervision.measure`."""
        self._joints.measure(now, joints, positions, stamp)
        self.worst = max(self.worst, self._joints.worst, key=lambda found: found[1])

    def command(self, now: float, q: np.ndarray) -> None:
        """Record commanded positions (n,) [rad] at monotonic now [s]."""
        self._joints.command(now, q)

    def take_worst(self) -> tuple[str, float]:
        """Return the worst following error since the last call."""
        worst, self.worst = self.worst, ("", 0.0)
        return worst

    def judge(self, now: float, silence: float, judged: bool = True) -> Verdict:
        """Return the action of a tick.

        Args:
            now: monotonic [s].
            silence: age of the newest states [s].
            judged: False: the robot is displaced on purpose, as without power.
        """
        self._began = min(self._began, now)
        if not self.supervised:
            return Verdict.HOLD if self.paused else Verdict.MOVE
        silence = 0.0 if self.paused else silence
        self.gone = silence > self._timeout
        if self.away and not (self.gone or self.paused):
            return Verdict.BEGIN
        self.away = self.gone or self.paused
        text = f"no {self._topic} for {silence:.1f} s: {'stopped until they return' if self.gone else 'late'}"
        self.silence = text if silence > LOST_AFTER else ""
        late = judged and self._joints.late(now)  # commands sent meanwhile would be an error
        quiet = judged and silence > LOST_AFTER  # also if the commands did not move
        self._late = now if late or quiet else self._late
        judged = judged and self._stops and not self.away
        fault = self._joints.fault(now) if judged else None
        # A commander that brakes without news runs ahead of the last states: judge when states return.
        if late and fault is not None and fault.kind is JointFaultKind.FOLLOWING:
            fault = None
        if fault is not None and not self.stopped:
            # A robot that does not yet hear its new controller does not move either: connections form one by one.
            since = self._began if fault.kind is JointFaultKind.FROZEN else self._late
            self._elsewhere = [t for t in self._elsewhere if now - t <= AGAIN]
            if now - since < LATE and len(self._elsewhere) < self.tries:
                self._elsewhere.append(now)
                return Verdict.BEGIN
            self.stopped = True
            self.fault = str(fault)
        return Verdict.HOLD if self.away or self.stopped or late else Verdict.MOVE
