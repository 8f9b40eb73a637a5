"""Supervision of commanded joints: following errors and dead measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.estimation.plausibility import EncoderTurns

COMMANDS = 512  # stored commands; older ones within `lag` are dropped
SHORTEST = 1e-3  # [s] minimum sample spacing for jumps: stamps may be rounded
ROUNDING = 1e-3  # [rad] deviation of a resting joint's samples


class JointFaultKind(Enum):
    """Kind of joint fault."""

    FOLLOWING = "following error"
    SILENT = "not measured"
    FROZEN = "frozen"
    JUMP = "jumped"
    NOT_A_NUMBER = "not a number"


class JointFault(NamedTuple):
    """Fault of a joint.

    Attributes:
        kind: of fault.
        joint: name.
        value: found, in the unit of the kind.
        limit: allowed.
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
    """Limits beyond which a joint is faulty.

    Attributes:
        following_error: distance from the commands [rad], scalar or (n,).
        lag: age of commands that still count: delay of drive and messages [s].
        debounce: minimum duration of an error or of non-finite measurements [s].
        silence: time without measurement [s].
        frozen: time without change after the command moved [s].
        frozen_move: motion of the command in it [rad].
        late: time without news before `late` [s].
        jump: change between samples, relative to the speed limit.
        jumps: consecutive jumps; earlier ones are dropped.
        jump_time: minimum duration of the jumps [s], as bursts of delayed states look like jumps.
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
        """Check the limits.

        Raises:
            ConfigError: if a limit is not positive; `lag`, `debounce` and `jump_time` may be 0.
        """
        for name in ("following_error", "silence", "frozen", "frozen_move", "jump", "jumps"):
            if not np.all(np.asarray(getattr(self, name)) > 0):
                raise ConfigError(f"supervision: {name} must be positive, got {getattr(self, name)}")
        for name in ("lag", "debounce", "jump_time"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"supervision: {name} must be 0 or more, got {getattr(self, name)}")


class JointSupervision:
    """Comparison of measured and commanded positions of n joints.

    A joint follows if it is near any command of the last `lag`, so speed and message delay cause no errors. All times
    are of one increasing clock.

    Attributes:
        names: joints.
        limits: replaceable.
        error: (n,) last following errors [rad].
    """

    def __init__(
        self,
        names: Sequence[str],
        velocity: np.ndarray,
        limits: JointSupervisionLimits | None = None,
        ranges: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Create the supervision without commands and measurements.

        Args:
            velocity: (n,) speed limits [rad/s]; infinite: no jumps.
            limits: default: `JointSupervisionLimits()`.
            ranges: lower and upper (n,) limits [rad]; encoder wraps of unlimited joints are not jumps. None: all
                limited.

        Raises:
            ConfigError: if a limit is out of range.
        """
        self.names, self.limits = tuple(names), limits or JointSupervisionLimits()
        self.limits.check()
        self._velocity = np.array(velocity, dtype=float)
        n = len(self.names)
        self._turns = EncoderTurns(*(ranges or (np.zeros(n), np.zeros(n))))
        self._commands, self._times = np.zeros((COMMANDS, n)), np.full(COMMANDS, -np.inf)
        self.restart()

    def restart(self) -> None:
        """Discard commands and measurements."""
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
        self._away_since = np.full(n, np.inf)  # start of the command's departure from its value at the last change
        self._found: JointFault | None = None

    def command(self, now: float, q: np.ndarray) -> None:
        """Record commanded positions (n,) [rad] at now [s]."""
        row = self._count % COMMANDS
        self._commands[row], self._times[row] = q, now
        if not self._count:  # measurements that are already constant are frozen too
            self._changed[:], self._command_then[:] = now, q
        self._count += 1

    def measure(self, now: float, joints: np.ndarray, q: np.ndarray, stamp: float | None = None) -> None:
        """Process a sample.

        Args:
            now: arrival [s].
            joints: (k,) indices.
            q: (k,) positions [rad].
            stamp: measurement time on any even clock [s]; None: now.
        """
        at = now if stamp is None else stamp
        finite = np.isfinite(q)
        bad, joints, q = joints[~finite], joints[finite], q[finite]
        self._bad_since[joints] = np.inf
        self._bad_since[bad] = np.minimum(self._bad_since[bad], now)
        self._note(JointFaultKind.NOT_A_NUMBER, bad, now - self._bad_since[bad], self.limits.debounce)
        self._seen[joints] = now
        q, _ = self._turns.unwrap(joints, q)  # a wrap of a limited joint is judged as a jump
        joints, q = self._without_jumps(now, joints, q, at)
        self._look_for_frozen(now, joints, q)
        self._position[joints], self._stamp[joints] = q, at
        if self._count:
            self._compare(now, joints, q)

    def fault(self, now: float) -> JointFault | None:
        """Return the first fault since `restart`, or a silent joint, or None."""
        if self._found is None:
            age = now - self._seen
            silent = np.flatnonzero(age > self.limits.silence)
            self._note(JointFaultKind.SILENT, silent, age[silent], self.limits.silence)
        return self._found

    def late(self, now: float) -> bool:
        """Return True if no sample came or changed while commands moved.

        This precedes any fault, so a commander can wait.
        """
        if not self._count or np.isnan(self._changed).all():
            return False
        moved = np.nanmax(np.abs(self._commands[(self._count - 1) % COMMANDS] - self._command_then))
        return bool(now - np.nanmax(self._changed) > self.limits.late and moved > self.limits.frozen_move)

    @property
    def worst(self) -> tuple[str, float]:
        """Joint with the largest following error, and the error [rad]."""
        k = int(np.argmax(self.error))
        return self.names[k], float(self.error[k])

    def _note(self, kind: JointFaultKind, joints: np.ndarray, value: np.ndarray, limit: float | np.ndarray) -> None:
        """Store the worst excess as the fault; a frozen fault replaces a following error, its consequence."""
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
        with np.errstate(invalid="ignore"):
            moved = np.abs(q - self._position[joints])
            gap = np.maximum(at - self._stamp[joints], SHORTEST)
            allowed = np.maximum(self.limits.jump * self._velocity[joints] * gap, ROUNDING)
            far = moved > allowed  # False for a first sample, compared with NaN
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
        fresh = joints[q != self._position[joints]]  # including a first sample
        self._changed[fresh], self._command_then[fresh] = now, command[fresh]
        # A joint at rest with its command is not frozen, and a resting joint moves after its command. So the command
        # must have left long ago, moved `lag` ago, and not returned.
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
        """Return minimum and maximum commands (n,) of the last `lag` [rad], including the one in force at its start."""
        kept = min(self._count, COMMANDS)
        order = (self._count - 1 - np.arange(kept)) % COMMANDS  # newest first
        within = int(np.count_nonzero(self._times[order] > now - self.limits.lag))
        rows = self._commands[order[: within + 1]]
        return rows.min(axis=0), rows.max(axis=0)
