"""Tendon and winch supervision: slack, snapped and overloaded wires, doubted angles, heat, power-on and stop.

A snapped wire winds in without becoming taut. Detection uses the wire wound since it was last taut, less the shortening
of its path at the reference or at the estimate, whichever gives less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError, SizeError, UnknownNameError
from humanoid_control.tendons.control.commands import (
    HOLD,
    HYBRID,
    OFF,
    PAY_OUT,
    TENSION,
    WinchCommand,
    WinchStates,
)
from humanoid_control.tendons.control.settings import STOPS
from humanoid_control.tendons.unit import MuscleUnit

SLACK_TIME = 0.3  # [s] below half the minimum tension, before a report
TAKEN_UP = 0.02  # [m] wound while slack, beyond which a length is unusable
SNAPPED, SILENT = 0.04, 2.0  # [m] wound since taut, [N]: above a slip of 20 mm
OVER, OVER_TIME = 1.3, 0.02  # relative to the maximum tension, [s]
CALM = 0.5  # [s] without doubt before a group follows references again
PAID_OUT = 5.0  # [N] final tension of PAY_OUT
COMMAND_TIMEOUT = 0.1  # [s] without joint commands before references are held
PERIODS = 3.0  # periods without tendon states before winches hold

AMBIENT, HOTTEST, WARM = 25.0, 110.0, 95.0  # [deg C] surroundings, maximum of a winding, start of limitation


class TendonEvent(NamedTuple):
    """Event of a tendon.

    Attributes:
        tendon: index.
        kind: 'slack', 'snapped', 'over' or 'taut'.
        text: message.
    """

    tendon: int
    kind: str
    text: str


class Heat:
    """Temperatures of winch windings and cases.

    C1 c1' = R i^2 - (c1 - c2) / R1,   C2 c2' = (c1 - c2) / R1 - (c2 - c_ambient) / R2

    Attributes:
        core: (M,) windings [deg C].
        case: (M,) [deg C].
        for_ever: (M,) continuous tension below `WARM` [N].
    """

    def __init__(self, units: Sequence[MuscleUnit], ambient: float = AMBIENT) -> None:
        if not ambient < WARM:
            raise ConfigError(f"heat: the ambient temperature must be below {WARM:g} deg C, got {ambient:g}")
        self.ambient = ambient
        self._R = np.array([u.resistance for u in units])
        self._k = np.array([u.force_per_current for u in units])
        self._R1, self._R2, self._C1, self._C2 = np.array([u.thermal for u in units]).reshape(-1, 4).T
        self.core, self.case = np.full((2, len(units)), ambient)
        self.for_ever = self._k * np.sqrt((WARM - ambient) / (self._R * (self._R1 + self._R2)))

    @property
    def warmth(self) -> np.ndarray:
        """(M,) 0 at ambient temperature to 1 at `HOTTEST`."""
        return np.clip((self.core - self.ambient) / (HOTTEST - self.ambient), 0.0, 1.0)

    @property
    def most(self) -> np.ndarray:
        """(M,) present maximum tension [N]; falls to `for_ever` within 5 deg above `WARM`."""
        share = np.clip((self.core - WARM) / 5.0, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            return np.where(share > 0, self.for_ever / np.maximum(share, 1e-6), np.inf)

    def step(self, tension: np.ndarray, dt: float) -> None:
        """Integrate under motor tensions (M,) [N] for dt [s]."""
        power = self._R * (np.nan_to_num(np.maximum(tension, 0.0)) / self._k) ** 2
        # Substeps of at most a fifth of the fastest time constant keep explicit Euler stable.
        for _ in range(many := max(1, int(np.ceil(dt / (0.2 * float(np.min(self._R1 * self._C1))))))):
            h = dt / many
            flow, out = (self.core - self.case) / self._R1, (self.case - self.ambient) / self._R2
            self.core += h * (power - flow) / self._C1
            self.case += h * (flow - out) / self._C2


class TendonSupervisor:
    """Watches M tendons and overrides their commands in a fault.

    Attributes:
        slack: (M,).
        snapped: (M,) latched until `clear_snapped`.
        over: (M,) overloaded, latched until `release`.
        unreadable: (M,) True: length unusable, much wound while slack.
        held_groups: groups with doubted angles, and the remaining time [s].
        heat: winch temperatures.
        stopped: '' or one of `STOPS`.
    """

    def __init__(
        self,
        names: Sequence[str],
        groups: Mapping[str, Sequence[str]],
        least: np.ndarray,
        most: np.ndarray,
        units: Sequence[MuscleUnit],
    ) -> None:
        """Create the supervisor.

        Args:
            names: M tendons.
            groups: tendons by group.
            least: (M,) [N].
            most: (M,) [N].
            units: (M,) winches.

        Raises:
            SizeError: if sizes differ.
            UnknownNameError: if a group has an unknown tendon.
        """
        m = len(names)
        for what, rows in (("least tensions", least), ("greatest tensions", most), ("units", units)):
            if len(rows) != m:
                raise SizeError(f"tendon supervisor: expected {m} {what}, got {len(rows)}")
        self.names, self.least, self.most = tuple(names), np.asarray(least), np.asarray(most)
        self.groups = {g: np.array([self._index(n) for n in members], dtype=int) for g, members in groups.items()}
        self.stiffness = np.array([u.stiffness for u in units])
        self.heat = Heat(units)
        self.slack, self.snapped, self.over, self.unreadable = np.zeros((4, m), dtype=bool)
        self._slack_for, self._over_for, self._taut_at = np.zeros((3, m))
        self._path_at, self._seen = np.zeros((2, m)), False  # at the reference, at the estimate
        self.held_groups: dict[str, float] = {}
        self._frozen: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.stopped = ""

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise UnknownNameError("tendon", name, self.names)
        return self.names.index(name)

    # -- watching -----------------------------------------------------------------------------------------------

    def step(
        self, states: WinchStates, path: np.ndarray, dt: float, estimated: np.ndarray | None = None
    ) -> list[TendonEvent]:
        """Watch one period; return its events.

        Args:
            states: measured.
            path: (M,) lengths at the reference [m].
            dt: period [s].
            estimated: (M,) lengths at the estimate [m]; default: `path`.
        """
        paths = path, path if estimated is None else estimated
        T, out = states.tension, list[TendonEvent]()
        taut = 0.5 * self.least <= T
        if not self._seen:
            taut, self._seen = np.ones(len(T), dtype=bool), True
        self._taut_at[taut] = states.wire[taut]
        wound = np.full(len(T), np.inf)
        for before, now in zip(self._path_at, paths, strict=True):
            before[taut] = now[taut]
            # a wire that follows its path winds only the shortening of the path
            wound = np.minimum(wound, (self._taut_at - states.wire) - (before - now))
        self._slack_for = np.where(taut, 0.0, self._slack_for + dt)
        slack = self._slack_for > SLACK_TIME
        out += [TendonEvent(int(k), "slack", f"{self.names[k]} is slack") for k in np.flatnonzero(slack & ~self.slack)]
        out += [
            TendonEvent(int(k), "taut", f"{self.names[k]} is taut again") for k in np.flatnonzero(self.slack & ~slack)
        ]
        self.slack = slack
        self.unreadable = ~taut & (wound > TAKEN_UP)
        torn = ~self.snapped & (T < SILENT) & (wound > SNAPPED)
        for k in np.flatnonzero(torn):
            out.append(
                TendonEvent(int(k), "snapped", f"{self.names[k]} snapped: {1e3 * wound[k]:.0f} mm wound, no tension")
            )
        self.snapped |= torn
        self._over_for = np.where(OVER * self.most < T, self._over_for + dt, 0.0)
        over = (self._over_for > OVER_TIME) & ~self.over
        for k in np.flatnonzero(over):
            group = next((g for g, rows in self.groups.items() if k in rows), "")
            rows = self.groups.get(group, np.array([k]))
            out.append(
                TendonEvent(int(k), "over", f"{self.names[k]} pulls with {T[k]:.0f} N: {group or 'it'} is released")
            )
            self.over[rows] = True
        self.heat.step(T, dt)
        self.held_groups = {g: left - dt for g, left in self.held_groups.items() if left > dt}
        for g in [g for g in self._frozen if g not in self.held_groups]:
            del self._frozen[g]
        return out

    def cut(self, tendon: str) -> None:
        """Mark a tendon as snapped.

        Raises:
            UnknownNameError: if the tendon is unknown.
        """
        self.snapped[self._index(tendon)] = True

    def clear_snapped(self, tendon: str) -> None:
        """Clear a snapped tendon.

        Raises:
            UnknownNameError: if the tendon is unknown.
        """
        k = self._index(tendon)
        self.snapped[k], self._seen = False, False

    def release(self) -> None:
        """Release overloaded groups and end a stop."""
        self.over[:], self.stopped = False, ""
        self._over_for[:] = 0.0

    def hold_group(self, group: str, states: WinchStates) -> None:
        """Doubt the angles of a group for half a second: its tendons hold their lengths as springs.

        Raises:
            UnknownNameError: if the group is unknown.
        """
        if group not in self.groups:
            raise UnknownNameError("group of tendons", group, self.groups)
        rows = self.groups[group]
        if group not in self._frozen:
            pulled = states.tension[rows].copy()
            self._frozen[group] = states.wire[rows] + pulled / self.stiffness[rows], pulled
        self.held_groups[group] = CALM

    def stop(self, how: str = "hold") -> None:
        """Stop all winches until `release`.

        Raises:
            UnknownNameError: if `how` is unknown.
        """
        if how not in STOPS:
            raise UnknownNameError("way to stop", how, STOPS)
        self.stopped = how

    # -- overriding ---------------------------------------------------------------------------------------------

    def override(self, command: WinchCommand, states: WinchStates, stiffness: float) -> WinchCommand:
        """Change commands in place where supervision overrides the law; `stiffness` [N/m] is of doubted groups."""
        for group, (length, pulled) in self._frozen.items():
            rows = self.groups[group]
            measured = states.wire[rows] + states.tension[rows] / self.stiffness[rows]
            pull = pulled + stiffness * (measured - length)
            command.kind[rows], command.speed[rows] = TENSION, 0.0
            command.tension[rows] = np.clip(pull, self.least[rows], self.most[rows])
        self._pay_out(command, self.over)
        if self.stopped == "pay_out":
            self._pay_out(command, np.ones(len(self.names), dtype=bool))
        elif self.stopped:
            command.kind[:] = OFF if self.stopped == "off" else HOLD
        command.kind[self.snapped] = OFF
        command.speed[self.snapped] = command.tension[self.snapped] = 0.0
        return command

    def _pay_out(self, command: WinchCommand, which: np.ndarray) -> None:
        command.kind[which], command.speed[which], command.tension[which] = PAY_OUT, 0.0, PAID_OUT


# -------- Power-on

GENTLY, REACHED, FARTHEST = 30.0, 0.85, 0.05  # [N] maximum, fraction of the goal, [m] maximum wound
PATIENCE = 4.0  # [s] per winch


class PowerOn:
    """Ramp to minimum tensions, one winch at a time in each group.

    Attributes:
        done: all tensions are reached.
        refused: reason of a failure, else empty.
    """

    def __init__(self, supervisor: TendonSupervisor, states: WinchStates) -> None:
        """Start at the present winch states."""
        self._s, self._goal = supervisor, np.minimum(supervisor.least, GENTLY)
        grouped = set(np.concatenate([*supervisor.groups.values(), []]).astype(int).tolist())
        alone = [k for k in range(len(supervisor.names)) if k not in grouped]
        queues = [list(rows) for rows in supervisor.groups.values()] + [[k] for k in alone]
        self._queues = [[int(k) for k in q if not supervisor.snapped[k]] for q in queues]
        self._start, self._elapsed = states.wire.copy(), [0.0] * len(self._queues)
        self.done, self.refused = False, ""

    def step(self, states: WinchStates, command: WinchCommand, dt: float) -> WinchCommand:
        """Fill the commands of a period dt [s]: HOLD, and HYBRID for active winches."""
        command.kind[:], command.speed[:] = HOLD, 0.0
        command.tension[:] = self._goal
        if self.refused:
            return command
        for number, queue in enumerate(self._queues):
            while queue and states.tension[queue[0]] >= REACHED * self._goal[queue[0]]:
                del queue[0]
                self._elapsed[number] = 0.0
            if not queue:
                continue
            k = queue[0]
            self._elapsed[number] += dt
            wound = self._start[k] - states.wire[k]
            if wound > FARTHEST or self._elapsed[number] > PATIENCE:
                why = f"{1e3 * wound:.0f} mm wound" if wound > FARTHEST else f"{PATIENCE:g} s"
                self.refused = f"{self._s.names[k]} did not become taut ({why}): is its wire on the drum?"
                return command
            command.kind[k] = HYBRID
        self.done = not any(self._queues)
        return command
