"""Supervision of joints that follow commands: does each go where it is told to, and are its measurements alive?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.estimation.plausibility import EncoderTurns

COMMANDS = 512  # that are remembered; more within `lag` are forgotten
SHORTEST = 1e-3  # [s] between samples of which a jump is judged: stamps may be rounded
ROUNDING = 1e-3  # [rad] by which samples of a joint at rest may differ: no jump


class JointFaultKind(Enum):
    """What is wrong with a joint."""

    FOLLOWING = "following error"
    SILENT = "not measured"
    FROZEN = "frozen"
    JUMP = "jumped"
    NOT_A_NUMBER = "not a number"


class JointFault(NamedTuple):
    """A fault of one joint.

    Attributes:
        joint: its name.
        value, limit: what was found, and the most that is allowed, in the unit of the kind.
    """

    kind: JointFaultKind
    joint: str
    value: float
    limit: float

    def __str__(self) -> str:
        words = {
            JointFaultKind.FOLLOWING: f"following error {self.value:.3f} rad (limit {self.limit:.3f})",
            JointFaultKind.SILENT: f"not measured for {self.value:.2f} s (limit {self.limit:.2f})",
            JointFaultKind.FROZEN: f"measurement frozen while the command moved {self.value:.3f} rad "
            f"(limit {self.limit:.3f})",
            JointFaultKind.JUMP: f"measurement jumped {self.value:.3f} rad (limit {self.limit:.3f})",
            JointFaultKind.NOT_A_NUMBER: f"measurement is not a number for {self.value:.2f} s (limit {self.limit:.2f})",
        }
        return f"{self.joint}: {words[self.kind]}"


@dataclass(frozen=True)
class JointSupervisionLimits:
    """What is allowed before a joint counts as faulty.

    Attributes:
        following_error: distance of a measured position from what was commanded [rad], one for all or (n,).
        lag: age of the commands that a joint may still be at [s]: delay of its drive and of the messages.
        debounce: time for which an error must last [s]; also of measurements that are not numbers.
        silence: time without a measurement [s].
        frozen: time for which a measurement may stay the same, to the last bit, after its command moved [s]
        frozen_move: how far the command must have moved in it [rad].
        late: time after which nobody should move on without news of the joints [s].
        jump: change from one sample to the next, as a multiple of what the joint's speed allows.
        jumps: samples in a row that must have jumped; until then they are dropped.
        jump_time: time from the first to the last of them [s]: where states come over a network, what was held up for
            a while comes in a burst, and looks like a jump until the joint could have come there since.
    """

    following_error: float | np.ndarray = 0.15
    lag: float = 0.05
    debounce: float = 0.05
    silence: float = 0.5
    frozen: float = 0.3
    frozen_move: float = 0.05
    late: float = 0.1
    jump: float = 3.0
    jumps: int = 3
    jump_time: float = 0.0

    def check(self) -> None:
        """Refuse numbers out of range.

        Raises:
            ConfigError: the first that is not positive; `lag`, `debounce` and `jump_time` may be 0.
        """
        for name in ("following_error", "silence", "frozen", "frozen_move", "jump", "jumps"):
            if not np.all(np.asarray(getattr(self, name)) > 0):
                raise ConfigError(f"supervision: {name} must be positive, got {getattr(self, name)}")
        for name in ("lag", "debounce", "jump_time"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"supervision: {name} must be 0 or more, got {getattr(self, name)}")


class JointSupervision:
    """Compares the measured positions of n joints with the commanded positions.

    A joint is where it should be if it is within the limit of any command of the last `lag`, so that neither speed
    nor delayed messages count as errors. All times are of one clock, and grow.

    Attributes:
        names: of the joints.
        limits: of faults; may be exchanged.
        error: (n,) following error of the last sample of each [rad]; 0 until measured.
    """

    def __init__(
        self,
        names: Sequence[str],
        velocity: np.ndarray,
        limits: JointSupervisionLimits | None = None,
        ranges: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Begin without commands and measurements.

        Args:
            names: of the joints, in the order of all arrays.
            velocity: (n,) speed limits [rad/s]; infinite: jumps are not judged.
            limits: default: `SupervisionLimits()`.
            ranges: lower and upper (n,) ends of the joints [rad]: where a joint has none, an encoder that begins again
                after a turn is no jump. None: all have ends.

        Raises:
            ConfigError: limits out of range.
        """
        self.names, self.limits = tuple(names), limits or JointSupervisionLimits()
        self.limits.check()
        self._velocity = np.array(velocity, dtype=float)
        n = len(self.names)
        self._turns = EncoderTurns(*(ranges or (np.zeros(n), np.zeros(n))))
        self._commands, self._times = np.zeros((COMMANDS, n)), np.full(COMMANDS, -np.inf)
        self.restart()

    def restart(self) -> None:
        """Forget commands and measurements."""
        n = len(self.names)
        self.error = np.zeros(n)
        self._count = 0
        self._turns.restart()
        self._times[:] = -np.inf
        self._position, self._stamp = np.full(n, np.nan), np.full(n, -np.inf)
        self._seen = np.full(n, np.nan)
        self._off_since, self._bad_since = np.full(n, np.inf), np.full(n, np.inf)
        self._jumped, self._jumps_since = np.zeros(n, dtype=int), np.zeros(n)
        self._changed, self._command_then = np.full(n, np.nan), np.full(n, np.nan)
        self._away_since = np.full(n, np.inf)  # the command moved on from where it was when the measurement changed
        self._found: JointFault | None = None

    def command(self, now: float, q: np.ndarray) -> None:
        """Take note of commanded positions (n,) [rad], of the present [s]."""
        row = self._count % COMMANDS
        self._commands[row], self._times[row] = q, now
        if not self._count:  # what was measured before, and stays so, is frozen too
            self._changed[:], self._command_then[:] = now, q
        self._count += 1

    def measure(self, now: float, joints: np.ndarray, q: np.ndarray, stamp: float | None = None) -> None:
        """Take a sample.

        Args:
            now: when it came [s].
            joints: (k,) indices of the measured joints.
            q: (k,) positions [rad].
            stamp: when they were measured, on any clock that runs evenly [s]; None: now.
        """
        at = now if stamp is None else stamp
        finite = np.isfinite(q)
        bad, joints, q = joints[~finite], joints[finite], q[finite]
        self._bad_since[joints] = np.inf
        self._bad_since[bad] = np.minimum(self._bad_since[bad], now)
        self._note(JointFaultKind.NOT_A_NUMBER, bad, now - self._bad_since[bad], self.limits.debounce)
        self._seen[joints] = now
        q, _ = self._turns.unwrap(joints, q)  # that of a joint with ends is judged as a jump
        joints, q = self._without_jumps(now, joints, q, at)
        self._look_for_frozen(now, joints, q)
        self._position[joints], self._stamp[joints] = q, at
        if self._count:
            self._compare(now, joints, q)

    def fault(self, now: float) -> JointFault | None:
        """The first fault that was found since the last `restart`, or a joint that is silent [s]; None: all is well."""
        if self._found is None:
            age = now - self._seen
            silent = np.flatnonzero(age > self.limits.silence)
            self._note(JointFaultKind.SILENT, silent, age[silent], self.limits.silence)
        return self._found

    def late(self, now: float) -> bool:
        """Test whether nothing new is known: no sample came, or none changed, while commands moved on.

        It is so long before anything is a fault, where a network or a computer stalls; who waits meanwhile does not get
        ahead of the joints.
        """
        if not self._count or np.isnan(self._changed).all():
            return False
        moved = np.nanmax(np.abs(self._commands[(self._count - 1) % COMMANDS] - self._command_then))
        return bool(now - np.nanmax(self._changed) > self.limits.late and moved > self.limits.frozen_move)

    @property
    def worst(self) -> tuple[str, float]:
        """The joint that is farthest from its command, and how far [rad]."""
        k = int(np.argmax(self.error))
        return self.names[k], float(self.error[k])

    def _note(self, kind: JointFaultKind, joints: np.ndarray, value: np.ndarray, limit: float | np.ndarray) -> None:
        """Keep the worst of these joints, where one is beyond its limit, and no fault is known yet.

        A measurement that does not follow because it is frozen is frozen.
        """
        unknown = self._found is None or (
            kind is JointFaultKind.FROZEN and self._found.kind is JointFaultKind.FOLLOWING
        )
        if not unknown or not len(joints):
            return
        limits = np.broadcast_to(limit, value.shape)
        k = int(np.argmax(value / limits))
        if value[k] > limits[k]:
            self._found = JointFault(kind, self.names[joints[k]], float(value[k]), float(limits[k]))

    def _without_jumps(self, now: float, joints: np.ndarray, q: np.ndarray, at: float) -> tuple[np.ndarray, np.ndarray]:
        """The samples that a joint can have come to since its last one."""
        with np.errstate(invalid="ignore"):
            moved = np.abs(q - self._position[joints])
            gap = np.maximum(at - self._stamp[joints], SHORTEST)
            allowed = np.maximum(self.limits.jump * self._velocity[joints] * gap, ROUNDING)
            far = moved > allowed  # never of a first sample, which is compared with NaN
        self._jumps_since[joints] = np.where(self._jumped[joints] > 0, self._jumps_since[joints], now)
        self._jumped[joints] = np.where(far, self._jumped[joints] + 1, 0)
        lasted = now - self._jumps_since[joints] >= self.limits.jump_time
        often = far & (self._jumped[joints] >= self.limits.jumps) & lasted
        self._note(JointFaultKind.JUMP, joints[often], moved[often], allowed[often])
        return joints[~far], q[~far]

    def _look_for_frozen(self, now: float, joints: np.ndarray, q: np.ndarray) -> None:
        if not self._count:
            return
        lim, command = self.limits, self._commands[(self._count - 1) % COMMANDS]
        fresh = joints[q != self._position[joints]]  # a first sample, too
        self._changed[fresh], self._command_then[fresh] = now, command[fresh]
        # A joint that rests with its command is not frozen, and one that rested begins to move after its command did:
        # what counts began so long ago, moved `lag` ago, and is not back since.
        away = np.abs(command[joints] - self._command_then[joints]) > ROUNDING
        self._away_since[joints] = np.where(away, np.minimum(self._away_since[joints], now), np.inf)
        same = joints[now - self._away_since[joints] > lim.frozen]
        if not len(same):
            return
        low, high = self._commanded(now)
        then = self._command_then[same]
        self._note(JointFaultKind.FROZEN, same, np.maximum(low[same] - then, then - high[same]), lim.frozen_move)

    def _compare(self, now: float, joints: np.ndarray, q: np.ndarray) -> None:
        lim = self.limits
        limit = np.broadcast_to(lim.following_error, self.error.shape)[joints]
        low, high = self._commanded(now)
        error = np.maximum(np.maximum(q - high[joints], low[joints] - q), 0.0)
        self.error[joints] = error
        off = error > limit
        self._off_since[joints] = np.where(off, np.minimum(self._off_since[joints], now), np.inf)
        long = off & (now - self._off_since[joints] >= lim.debounce)
        self._note(JointFaultKind.FOLLOWING, joints[long], error[long], limit[long])

    def _commanded(self, now: float) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest command (n,) of the last `lag`, that in force at its beginning among them [rad]."""
        kept = min(self._count, COMMANDS)
        order = (self._count - 1 - np.arange(kept)) % COMMANDS  # the newest first
        within = int(np.count_nonzero(self._times[order] > now - self.limits.lag))
        rows = self._commands[order[: within + 1]]
        return rows.min(axis=0), rows.max(axis=0)
