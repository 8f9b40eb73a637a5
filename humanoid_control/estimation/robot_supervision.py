"""Supervision of a robot by who commands it: is it there, does it go where it is told to, and what to do where not?"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from humanoid_control.estimation.joint_supervision import JointFaultKind, JointSupervision, JointSupervisionLimits

LATE = 1.0  # [s] after states were late, or it began, in which a robot that is elsewhere was out of reach: no fault,
AGAIN = 5.0  # [s] unless it is so once more, or more often than `tries` in that time
BURST = 0.05  # [s] for which what was held up and comes in a burst may look like a jump: of 0.1 s at full speed
LOST_AFTER = 0.2  # [s] without states after which others are warned


class Verdict(Enum):
    """What the commands should do: continue; come to rest and stay; or begin again where the robot is."""

    MOVE = "move"
    HOLD = "hold"
    BEGIN = "begin"


class RobotSupervision:
    """Judge of a commanded robot by its joint states.

    A silent robot, or one with frozen time, is away: it is commanded to rest, and again from its posture when
    it is back. A joint with a fault stops it until `~/resync`.

    Attributes:
        supervised: it was measured before it was first commanded.
        away, stopped: see above.
        paused: the simulator's time stands still.
        tries: so often it is begun again with a robot that was out of reach, before that is a fault.
        silence, fault: words for what is wrong, empty where nothing is
        gone: the silence is more than late.
        worst: joint with the largest following error since the last `take_worst`, and the error [rad].
    """

    def __init__(
        self,
        names: Sequence[str],
        velocity: np.ndarray,
        topic: str = "joint states",
        ranges: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Create the robot supervision, with the default limits.

        Args:
            names: of n joints.
            velocity: (n,) their speed limits [rad/s].
            topic: of their states, for reports.
            ranges: lower and upper (n,) ends of the joints [rad]; see `JointSupervision`.
        """
        self._topic, self._joints = topic, JointSupervision(names, velocity, ranges=ranges)
        self._late = -np.inf  # when the states were late [s]
        self._elsewhere: list[float] = []  # when the robot was elsewhere after that, lately [s]
        self._began = np.inf  # when it was first judged since its first command [s]
        self._timeout, self._stops = 0.5, True
        self.paused, self.tries, self.worst = False, 1, ("", 0.0)
        self.silence = self.fault = ""
        self.forget()

    def configure(self, following_error: float, timeout: float) -> None:
        """Set the limits.

        Args:
            following_error: [rad]; 0: no fault of a joint stops the robot.
            timeout: silence of the states after which the robot is away [s].
        """
        self._timeout, self._stops = timeout, following_error > 0
        self._joints.limits = JointSupervisionLimits(
            following_error or np.inf, silence=timeout + LOST_AFTER, jump_time=BURST
        )

    def forget(self) -> None:
        """Nothing is commanded any more."""
        self.supervised = self.away = self.stopped = self.gone = False

    def begin(self, known: bool) -> None:
        """The first command follows: from a posture that was measured, or only assumed; that is not supervised."""
        self.silence = self.fault = ""
        self._joints.restart()
        self.supervised, self._began = known, np.inf

    def restart(self) -> None:
        """Discard all commands and measurements so far."""
        self._joints.restart()

    def measure(self, now: float, joints: np.ndarray, positions: np.ndarray, stamp: float | None) -> None:
        """Take joint states; arguments as of `JointSupervision.measure`."""
        self._joints.measure(now, joints, positions, stamp)
        self.worst = max(self.worst, self._joints.worst, key=lambda found: found[1])

    def command(self, now: float, q: np.ndarray) -> None:
        """Take note of commanded positions (n,) [rad], at the monotonic time `now` [s]."""
        self._joints.command(now, q)

    def take_worst(self) -> tuple[str, float]:
        """The worst following error since the last call, for diagnostics."""
        worst, self.worst = self.worst, ("", 0.0)
        return worst

    def judge(self, now: float, silence: float, judged: bool = True) -> Verdict:
        """Return the action for the commands of a tick.

        Args:
            now: monotonic [s].
            silence: age of the newest joint states [s].
            judged: the robot should be where the commands are; False: it is elsewhere by intent, as without power.
        """
        self._began = min(self._began, now)
        if not self.supervised:
            return Verdict.HOLD if self.paused else Verdict.MOVE
        silence = 0.0 if self.paused else silence
        self.gone = silence > self._timeout
        if self.away and not (self.gone or self.paused):
            return Verdict.BEGIN
        self.away = self.gone or self.paused
        text = f"no {self._topic} for {silence:.1f} s: {'stopped until they are back' if self.gone else 'late'}"
        self.silence = text if silence > LOST_AFTER else ""
        late = judged and self._joints.late(now)  # what is commanded on meanwhile would be an error then
        quiet = judged and silence > LOST_AFTER  # also where what was commanded meanwhile did not move
        self._late = now if late or quiet else self._late
        judged = judged and self._stops and not self.away
        fault = self._joints.fault(now) if judged else None
        # What brakes while nothing new is known gets ahead of what was known last: that is judged when states are back.
        if late and fault is not None and fault.kind is JointFaultKind.FOLLOWING:
            fault = None
        if fault is not None and not self.stopped:
            # Nor does a robot move that does not hear its new controller yet: the graph connects them one by one.
            since = self._began if fault.kind is JointFaultKind.FROZEN else self._late
            self._elsewhere = [t for t in self._elsewhere if now - t <= AGAIN]
            if now - since < LATE and len(self._elsewhere) < self.tries:
                self._elsewhere.append(now)
                return Verdict.BEGIN
            self.stopped = True
            self.fault = str(fault)
        return Verdict.HOLD if self.away or self.stopped or late else Verdict.MOVE
