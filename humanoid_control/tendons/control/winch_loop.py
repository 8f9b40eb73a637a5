"""Drive loop of a winch for 1 kHz or more, shared by simulator and drivers.

A winch winding at w changes the free wire by -w; positive motor force winds. Commands: HYBRID winds at w_c with an
admittance to the tension f. TENSION holds f, LENGTH servoes the wire to x_ref, HOLD keeps the wire, PAY_OUT lowers the
tension to f at limited speed. A tension sensor without a signal under a motor load is *deaf*: its tension is then
estimated from the current.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError, NotANumberError, SizeError, UnknownNameError
from humanoid_control.tendons.control.commands import (
    HOLD,
    HYBRID,
    KIND_NAMES,
    LENGTH,
    OFF,
    PAY_OUT,
    TENSION,
    WinchCommand,
    WinchStates,
)
from humanoid_control.tendons.control.unit_table import UnitTable, motor_force, unit_table
from humanoid_control.tendons.unit import MuscleUnit

LONGEST = 1.001e-3  # [s] longest loop period
LONGEST_WIRE = 10.0  # [m] a longer wire is given in another unit

LEAD = 100.0  # [N] tension error at which the admittance saturates
SHARE = 0.9  # maximum velocity command, relative to the no-load speed
INTEGRAL = 300.0  # [N] limit of the integral
OVERLOAD = 1.2  # tension relative to T_max beyond which a servoed length yields
SLOW = 0.01  # [m/s] width of the sign change of feedforward friction

CURRENT_TIME = 9.5e-3  # [s] filter of the tension from the current: 10 % per millisecond
TURNING = 2e-3  # [m/s] speed above which friction has a sign
SILENT, LOADED, PATIENCE = 2.0, 30.0, 0.03  # [N], [N], [s]: sensor below, current above, duration


@dataclass(frozen=True)
class LoopGains:
    """Gains of the drive loop.

    Attributes:
        admittance: A [m/s/N].
        guard: A_s, speed per tension beyond a limit [m/s/N].
        speed: Kv [N s/m].
        speed_integral: Kvi [N/m].
        tension: kT.
        tension_damping: dT [N s/m].
        length: Kx [N/m].
        length_damping: Kd [N s/m].
        length_integral: [N/m/s].
        lowering: maximum speed of PAY_OUT [m/s].
        pay_out_time: decay time of its tension [s].
    """

    admittance: float = 1e-3
    guard: float = 10e-3
    speed: float = 3000.0
    speed_integral: float = 6e4
    tension: float = 4.0
    tension_damping: float = 4000.0
    length: float = 2e5
    length_damping: float = 3000.0
    length_integral: float = 1e6
    lowering: float = 0.02
    pay_out_time: float = 1.0

    def __post_init__(self) -> None:
        for what, value in vars(self).items():
            if not (np.isfinite(value) and value >= 0):
                raise ConfigError(f"winch loop: {what} must not be negative, got {value:g}")


class GainTable(NamedTuple):
    """`LoopGains` for kernels."""

    admittance: float
    guard: float
    speed: float
    speed_integral: float
    tension: float
    tension_damping: float
    length: float
    length_damping: float
    length_integral: float
    lowering: float
    pay_out_time: float


class LoopTable(NamedTuple):
    """Commands as in `WinchCommand`, limits, memory and results of M loops, (M,) each.

    Attributes:
        admittance: A [m/s/N].
        least: T_min [N].
        most: T_max [N].
        last: kind of the last command; -1: none.
        integral: I [N].
        reference: wire to hold [m].
        forward: tension to hold [N].
        by_current: T_c [N].
        doubtful: duration of sensor contradiction [s].
        deaf: 1: sensor unused.
        seen: tension used [N].
        force: motor force [N].
    """

    kind: I1
    speed: F1
    tension: F1
    length: F1
    admittance: F1
    least: F1
    most: F1
    unit: UnitTable
    gains: GainTable
    last: I1
    integral: F1
    reference: F1
    forward: F1
    by_current: F1
    doubtful: F1
    deaf: I1
    seen: F1
    force: F1


MEMORY = ("integral", "reference", "forward", "by_current", "doubtful", "seen", "force")

# -------- Kernels


@inlined
def select_tension(d: LoopTable, k: int, w: float, T: float, h: float) -> float:
    """Return the tension to use [N]: from the sensor, or from the current if the sensor is deaf."""
    turning = 1.0 if w > TURNING else -1.0 if w < -TURNING else 0.0
    # T_c += (1 - exp(-h / 9.5 ms)) (F - b w - f_c sign(w) [|w| > 2 mm/s] - T_c); deaf after T < 2 N, T_c > 30 N for 30
    # ms.
    # Static friction has no known sign, so it is left out near standstill.
    load = d.force[k] - d.unit.viscous[k] * w - d.unit.friction[k] * turning
    d.by_current[k] += (1.0 - math.exp(-h / CURRENT_TIME)) * (load - d.by_current[k])
    # Latched: a sensor that failed once is not trusted again before a reset.
    if d.deaf[k] == 0:
        doubt = T < SILENT and d.by_current[k] > LOADED
        d.doubtful[k] = d.doubtful[k] + h if doubt else 0.0
        if d.doubtful[k] >= PATIENCE:
            d.deaf[k] = 1
    return max(0.0, d.by_current[k]) if d.deaf[k] == 1 else T


@inlined
def velocity_force(d: LoopTable, k: int, wanted: float, w: float, T: float, h: float) -> float:
    """Return the force [N] of the velocity loop for a winding speed [m/s]; update its integral."""
    # w* = w_c + A clip(f - T, +-100 N); w* >= A_s (T_min / 2 - T) if slack; w* <= -A_s (T - T_max) if overloaded; |w*|
    # <= 0.9 w0; I += h Kvi (w* - w); F = T + Kv (w* - w) + b w* + I.
    g, u = d.gains, d.unit
    # The slack guard acts below T_min / 2: at T_min it would rectify sensor noise into drift.
    if 0.5 * d.least[k] > T:
        wanted = max(wanted, g.guard * (0.5 * d.least[k] - T))
    if d.most[k] < T:
        wanted = min(wanted, -g.guard * (T - d.most[k]))
    fastest = SHARE * u.speed[k]
    wanted = min(max(wanted, -fastest), fastest)
    integral = d.integral[k] + h * g.speed_integral * (wanted - w)
    integral = min(max(integral, -INTEGRAL), INTEGRAL)
    asked = T + g.speed * (wanted - w) + u.viscous[k] * wanted + integral
    given = motor_force(u, k, asked, w)
    if (asked - given) * (wanted - w) <= 0.0:  # a saturated motor stops the integral (anti-windup)
        d.integral[k] = integral
    return given


@inlined
def length_force(
    d: LoopTable, k: int, measured: tuple[float, float, float], forward: tuple[float, float], h: float
) -> float:
    """Return the force [N] of the length loop for the wire `reference`.

    Args:
        d: loops.
        k: winch.
        measured: wire [m], winding speed [m/s], tension [N].
        forward: feedforward speed [m/s] and tension [N].
        h: period [s].
    """
    # F = f + Kx (x - x_ref) - Kd (w - w_c) + b w_c + I; x_ref yields if T > 1.2 T_max.
    x, w, T = measured
    wanted, f = forward
    g, u = d.gains, d.unit
    over = T - OVERLOAD * d.most[k]
    # Overload: let the reference out, so that the wire yields and stays yielded.
    if over > 0.0:
        d.reference[k] += h * min(g.guard * over, SHARE * u.speed[k])
    error = x - d.reference[k]
    integral = min(max(d.integral[k] + h * g.length_integral * error, -INTEGRAL), INTEGRAL)
    asked = f + g.length * error - g.length_damping * (w - wanted) + u.viscous[k] * wanted + integral
    given = motor_force(u, k, asked, w)
    if (asked - given) * error <= 0.0:
        d.integral[k] = integral
    return given


@inlined
def winch_force(d: LoopTable, k: int, x: float, w: float, T: float, h: float) -> float:
    """Return the motor force of winch k [N] for free wire x [m], winding speed w [m/s] and sensor tension T [N].

    Updates the memory by a period h [s].
    """
    g, u = d.gains, d.unit
    T = select_tension(d, k, w, T, h)
    d.seen[k] = T
    kind = d.kind[k]
    # A new kind begins without integral, at the present wire and tension.
    if kind != d.last[k]:
        d.last[k], d.integral[k] = kind, 0.0
        d.reference[k], d.forward[k] = x, T
    if kind == HYBRID:
        # The clip bounds the winding speed after a large tension error.
        lead = min(max(d.tension[k] - T, -LEAD), LEAD)
        return velocity_force(d, k, d.speed[k] + d.admittance[k] * lead, w, T, h)
    # F = f + kT (f - T) - dT (w - w_c) + b w_c + f_c tanh(w_c / 1 cm/s). No integrator: with Coulomb friction the
    # tension loop would hunt.
    if kind == TENSION:
        f = min(max(d.tension[k], 0.0), d.most[k])
        wc = min(max(d.speed[k], -SHARE * u.speed[k]), SHARE * u.speed[k])
        forward = u.viscous[k] * wc + u.friction[k] * math.tanh(wc / SLOW)
        return motor_force(u, k, f + g.tension * (f - T) - g.tension_damping * (w - wc) + forward, w)
    if kind == LENGTH:
        if OVERLOAD * d.most[k] >= T:
            # After an overload, wind back to the commanded length at a limited speed.
            step = h * SHARE * u.speed[k]
            d.reference[k] += min(max(d.length[k] - d.reference[k], -step), step)
        f = min(max(d.tension[k], 0.0), d.most[k])
        return length_force(d, k, (x, w, T), (d.speed[k], f), h)
    if kind == HOLD:
        return length_force(d, k, (x, w, T), (0.0, min(d.forward[k], d.most[k])), h)
    if kind == PAY_OUT:
        # PAY_OUT: the admittance follows a decaying tension, and lowering limits the speed.
        falling = d.forward[k] - d.tension[k]  # decays to 1/28 within pay_out_time
        d.forward[k] = d.tension[k] + falling * math.exp(-h / (0.3 * g.pay_out_time))
        lead = min(max(d.forward[k] - T, -LEAD), LEAD)
        return velocity_force(d, k, max(d.admittance[k] * lead, -g.lowering), w, T, h)
    return 0.0


@kernel
def winch_forces(d: LoopTable, x: np.ndarray, w: np.ndarray, T: np.ndarray, h: float) -> None:
    for k in range(d.kind.shape[0]):
        d.force[k] = winch_force(d, k, x[k], w[k], T[k], h)


@kernel
def winch_forces_at(table: Table[LoopTable], x: np.ndarray, w: np.ndarray, T: np.ndarray, h: float) -> None:
    winch_forces(unpack(table, LoopTable), x, w, T, h)


# -------- For Python


class WinchLoop:
    """Drive loops of M winches; kernels may keep the arrays.

    Attributes:
        names: tendons.
        units: winches.
        gains: common to all loops.
        packed: packed `LoopTable`.
    """

    def __init__(
        self,
        names: Sequence[str],
        units: Sequence[MuscleUnit],
        least: np.ndarray,
        most: np.ndarray,
        gains: LoopGains | None = None,
    ) -> None:
        """Create the loops, all off.

        Args:
            units: winches (M,).
            least: T_min (M,) [N].
            most: T_max (M,) [N].
            gains: default: `LoopGains()`.

        Raises:
            SizeError: if sizes differ.
            ConfigError: if a minimum tension is negative or above its maximum.
        """
        self.names, self.units, self.gains = tuple(names), tuple(units), gains or LoopGains()
        self._index = {name: k for k, name in enumerate(self.names)}
        m = len(self.names)
        least, most = np.array(least, dtype=float), np.array(most, dtype=float)
        if len(self.units) != m or least.shape != (m,) or most.shape != (m,):
            raise SizeError(
                f"winch loop: {m} tendons, {len(self.units)} units, {least.size} least, {most.size} greatest tensions"
            )
        for k in np.flatnonzero(~((least >= 0) & (least <= most))):
            raise ConfigError(
                f"tendon '{self.names[k]}': needs 0 <= minimum <= maximum tension, got {least[k]:g} and {most[k]:g} N"
            )
        zeros = {name: np.zeros(m) for name in ("speed", "tension", "length", *MEMORY)}
        table = LoopTable(
            kind=np.full(m, OFF, dtype=np.int64),
            admittance=np.full(m, self.gains.admittance),
            least=least,
            most=most,
            unit=unit_table(self.units),
            gains=GainTable(**vars(self.gains)),
            last=np.full(m, -1, dtype=np.int64),
            deaf=np.zeros(m, dtype=np.int64),
            **zeros,
        )
        self.packed = Packed(table)

    @property
    def record(self) -> LoopTable:
        return self.packed.record

    @property
    def deaf(self) -> np.ndarray:
        """(M,) True where a tension sensor is ignored."""
        return self.record.deaf == 1

    @property
    def seen(self) -> np.ndarray:
        """(M,) tensions used by the loops [N]."""
        return self.record.seen

    def reset(self) -> None:
        """Switch all winches off and clear the memory, including latched sensor faults."""
        r = self.record
        r.kind[:], r.last[:], r.deaf[:] = OFF, -1, 0
        for name in ("speed", "tension", "length", *MEMORY):
            getattr(r, name)[:] = 0.0

    def begin(self, tension: np.ndarray) -> None:
        """Initialise the loops in steady state at tensions (M,) [N]."""
        self.record.by_current[:], self.record.force[:], self.record.seen[:] = tension, tension, tension

    def check_period(self, h: float) -> None:
        """Check that the tension loop is stable at a period h [s]: dT h < m.

        Raises:
            ConfigError: if the period is too long.
        """
        if not 0 < h <= LONGEST:
            raise ConfigError(f"winch loop: the period must be above 0 and at most 1 ms, got {1e3 * h:g} ms")
        for name, unit in zip(self.names, self.units, strict=True):
            if self.gains.tension_damping * h >= unit.mass:
                raise ConfigError(
                    f"tendon '{name}': tension damping {self.gains.tension_damping:g} N s/m times a period of "
                    f"{1e3 * h:g} ms must be below the unit's mass, {unit.mass:g} kg: damp less, or run the loop faster"
                )

    def command(self, command: WinchCommand) -> None:
        """Set the commands of M winches; a tendon with a required non-finite value keeps its last command.

        Raises:
            SizeError: if a size is not M.
            UnknownNameError: if a kind is unknown.
            NotANumberError: if some values were rejected.
        """
        r, m = self.record, len(self.names)
        rows = [np.asarray(row) for row in command]
        for what, row in zip(("kinds", "speeds", "tensions", "lengths"), rows, strict=True):
            if row.shape != (m,):
                raise SizeError(f"winch command: expected {m} {what}, got {row.shape}")
        kind, speed, tension, length = rows
        for k in np.flatnonzero((kind < 0) | (kind >= len(KIND_NAMES))):
            raise UnknownNameError("kind of winch command", str(kind[k]), KIND_NAMES)
        needs_all = np.isfinite(speed) & np.isfinite(tension)
        idle = (kind == OFF) | (kind == HOLD)
        good = idle | (needs_all & (np.isfinite(length) | (kind != LENGTH)))
        r.kind[good] = kind[good]
        for to, row in ((r.speed, speed), (r.tension, tension), (r.length, length)):
            to[good] = np.where(np.isfinite(row), row, 0.0)[good]
        np.maximum(r.tension, 0.0, out=r.tension)
        if not good.all():
            names = ", ".join(self.names[k] for k in np.flatnonzero(~good)[:3])
            raise NotANumberError(f"winch command: not a number for {names}: the last command is kept")

    def check(
        self, names: Sequence[str], position: Sequence[float], velocity: Sequence[float], effort: Sequence[float]
    ) -> tuple[int, np.ndarray]:
        """Validate a command without setting it; arguments and errors as in `take`.

        Returns:
            Kind, and position, velocity and effort (3, M) in tendon order, NaN if absent.
        """
        self._check_fields(names, position, velocity, effort)
        rows = np.full((3, len(self.names)), np.nan)
        which = [self._index[name] for name in names]
        for row, values in zip(rows, (position, velocity, effort), strict=True):
            if len(values):
                row[which] = values
        x, _, f = rows
        if (f < 0).any():
            k = int(np.flatnonzero(f < 0)[0])
            raise ConfigError(
                f"tendon command: tension of {self.names[k]} is {f[k]:.4g} N, but wires cannot push: rejected"
            )
        if (np.abs(x) > LONGEST_WIRE).any():
            k = int(np.flatnonzero(np.abs(x) > LONGEST_WIRE)[0])
            raise ConfigError(f"tendon command: length of {self.names[k]} is {x[k]:.4g} m; is it in mm? rejected")
        return LENGTH if len(position) else HYBRID if len(velocity) else TENSION, rows

    def take(
        self, names: Sequence[str], position: Sequence[float], velocity: Sequence[float], effort: Sequence[float]
    ) -> None:
        """Set a command by its non-empty fields; unnamed tendons and tendons with NaN keep theirs.

        Velocity and effort: HYBRID; the velocity is the wire rate, negative for winding. Effort alone: TENSION.
        Position: LENGTH, effort as feedforward.

        Args:
            names: tendons, each once.
            position: wire lengths [m], or empty.
            velocity: wire rates [m/s], or empty.
            effort: tensions [N], or empty.

        Raises:
            UnknownNameError: if a tendon is unknown.
            ConfigError: if a name repeats, fields are invalid, a tension is negative, or a length is in millimetres.
                Nothing is set.
        """
        kind, rows = self.check(names, position, velocity, effort)
        x, rate, f = rows
        f = np.where(np.isfinite(x) & np.isnan(f), self.record.tension, f) if kind == LENGTH and not len(effort) else f
        needed = {LENGTH: x + f, HYBRID: rate + f, TENSION: f}[kind]
        good, r = np.isfinite(needed), self.record
        r.kind[good], r.tension[good] = kind, f[good]
        r.speed[good] = -rate[good] if kind == HYBRID else 0.0
        r.length[good] = x[good] if kind == LENGTH else r.length[good]

    def _check_fields(self, names: Sequence[str], *fields: Sequence[float]) -> None:
        for name in names:
            if name not in self._index:
                raise UnknownNameError("tendon", str(name)[:60], self.names)
        if len(set(names)) != len(names):
            twice = next(n for n in names if list(names).count(n) > 1)
            raise ConfigError(f"tendon command: contains '{twice}' twice: rejected")
        for what, values in zip(("position", "velocity", "effort"), fields, strict=True):
            if len(values) not in (0, len(names)):
                raise ConfigError(f"tendon command: {len(values)} numbers of {what} for {len(names)} tendons: rejected")
        position, velocity, effort = fields
        if not (len(position) or len(effort)):
            raise ConfigError("tendon command: needs effort (tension), velocity and effort, or position: rejected")
        if len(position) and len(velocity):
            raise ConfigError("tendon command: position and velocity cannot be combined: rejected")

    def hold(self) -> None:
        """Hold all wires at their present length; winches that are off stay off."""
        r = self.record
        r.kind[r.kind != OFF] = HOLD

    def run(self, states: WinchStates, h: float) -> np.ndarray:
        """Run all loops for a period h [s]; return motor forces (M,) [N], in a reused array."""
        winch_forces_at(self.packed.table, *states, h)
        return self.record.force


RETURN = 20.0  # [1/s] length gain through a drive's own velocity loop


def winding_speeds(loop: WinchLoop, states: WinchStates, h: float) -> np.ndarray:
    """Return winding speeds w* (M,) [m/s] for drives with their own velocity loop; updates the memory.

    Lengths use w* = w_c + 20 / s (x - x_ref). TENSION is unsupported and stops the winch.

    Args:
        loop: commands.
        states: measured.
        h: period [s].
    """
    r, g = loop.record, loop.gains
    new = r.kind != r.last
    r.last[new] = r.kind[new]
    r.reference[new], r.forward[new] = states.wire[new], states.tension[new]
    length, paying = r.kind == LENGTH, r.kind == PAY_OUT
    r.reference[length] = r.length[length]
    falling = r.forward - r.tension
    r.forward[paying] = (r.tension + falling * np.exp(-h / (0.3 * g.pay_out_time)))[paying]
    goal = np.where(paying, r.forward, r.tension)
    led = r.admittance * np.clip(goal - states.tension, -LEAD, LEAD)
    wanted = np.where(paying, np.maximum(led, -g.lowering), r.speed + led)
    back = RETURN * (states.wire - r.reference)
    wanted = np.where(length, r.speed + back, np.where(r.kind == HOLD, back, wanted))
    wanted[(r.kind == OFF) | (r.kind == TENSION)] = 0.0
    led_by_tension = (r.kind == HYBRID) | paying
    slack, over = 0.5 * r.least - states.tension, states.tension - r.most
    wanted = np.where(led_by_tension & (slack > 0), np.maximum(wanted, g.guard * slack), wanted)
    wanted = np.where((r.kind != OFF) & (over > 0), np.minimum(wanted, -g.guard * over), wanted)
    fastest = SHARE * r.unit.speed
    return np.clip(wanted, -fastest, fastest)
