"""Winches that pull tendons: motor, gear, drum, wire, friction, slack; linear-implicit steps.

Signs: G = dl/dq, tensions T give the joint torques -G^T T, winding at w takes in wire, dx/dt = -w.

With path length l(q), wire x and the wire slipped off the drum, the stretch s gives the tension T:

    s = l(q) - x - slipped;   T = max(0, k s + c (G v + w)) where s > 0;   m dw/dt = F - T - b w - f_c sign(w)
    M dv/dt = -h(q, v) - G^T (T (1 + mu tanh(G v / v0))) + everything else

A step of length h takes T at its end. With a = h k + c, b' = b + f_c / max(|w|, 1 mm/s) and den = m + h b' + h a,
elimination of the winch speed at the end leaves for a taut tendon

    T+ = T0 + alpha G v+,   alpha = a (m + h b') / den,   T0 = (k s (m + h b') + a (m w + h F)) / den
    w+ = (m w + h (F - T+)) / (m + h b'),   x+ = x - h w+

Path friction is a damping T mu / max(|G v|, v0). The stretch is never integrated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.errors import ConfigError
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendons import tendons_of
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors, TendonEncoders, TendonPlant
from humanoid_control.tendons.control.commands import HOLD, WinchStates
from humanoid_control.tendons.control.unit_table import UnitTable, friction_rate, wire_tension
from humanoid_control.tendons.control.winch_loop import LoopGains, LoopTable, WinchLoop, winch_forces
from humanoid_control.tendons.tendon import Pulley, TendonSet, ViaPoint, Wrap
from humanoid_control.tendons.unit import MuscleUnit

CREEP = 0.01  # [m/s] v0: path speed over which friction changes its sign
FREE = 1e-6  # relative tension below which a tendon counts as slack

# -------- Kernels


class WinchTable(NamedTuple):
    """Winches and wires of M tendons over D joints; one entry per tendon unless stated.

    Attributes:
        unit: true units, which a drive may know wrongly.
        path_friction: (1,) mu.
        wire: x [m].
        speed: w [m/s].
        slipped: [m].
        tension: tension at the end of the step [N].
        sensed: measured tension [N].
        snapped: 1: torn.
        deaf: 1: sensor reads zero.
        length: path length at the beginning of the step [m].
        rate: rate of the path length [m/s].
        arms: (M, D) G [m].
        zero: length at zero angles [m].
        rest: T0 [N].
        slope: alpha [N s/m].
        friction: path damping [N s/m].
        taut: 1: pulls.
        first: (M + 1,) starts of the tendons in `crossed`.
        crossed: (L,) crossed joints of all tendons.
    """

    loop: LoopTable
    unit: UnitTable
    path_friction: F1
    wire: F1
    speed: F1
    slipped: F1
    tension: F1
    sensed: F1
    snapped: I1
    deaf: I1
    length: F1
    rate: F1
    arms: F2
    factor: F1
    zero: F1
    rest: F1
    slope: F1
    friction: F1
    taut: I1
    first: I1
    crossed: I1


@inlined
def correct_lengths(t: WinchTable) -> None:
    """Apply the plant's factors to lengths and moment arms."""
    for k in range(t.length.shape[0]):
        if t.factor[k] != 1.0:
            # Only the change since zero angles scales: l = zero + factor (l - zero).
            t.length[k] += (t.factor[k] - 1.0) * (t.length[k] - t.zero[k])
            for i in range(t.first[k], t.first[k + 1]):
                t.arms[k, t.crossed[i]] *= t.factor[k]


@inlined
def path_rates(t: WinchTable, v: np.ndarray) -> None:
    for k in range(t.length.shape[0]):
        rate = 0.0
        for i in range(t.first[k], t.first[k + 1]):
            rate += t.arms[k, t.crossed[i]] * v[t.crossed[i]]
        t.rate[k] = rate


@kernel
def run_drives(t: WinchTable, h: float) -> None:
    """Measure the tensions and run the drive loops, which set the motor forces."""
    for k in range(t.tension.shape[0]):
        t.sensed[k] = 0.0 if t.deaf[k] == 1 else t.tension[k]
    winch_forces(t.loop, t.wire, t.speed, t.sensed, h)


@kernel
def predict_tensions(t: WinchTable, h: float) -> None:
    """Compute T0, alpha, path damping and taut tendons."""
    for k in range(t.tension.shape[0]):
        u, w, s = t.unit, t.speed[k], t.length[k] - t.wire[k] - t.slipped[k]
        at_rest, stiffness = wire_tension(u, k, s)
        # a = h k + c, heavy = m + h b', as in the module docstring; at_rest = k s.
        a = h * stiffness + u.damping[k]
        heavy = u.mass[k] + h * friction_rate(u, k, w)
        den = heavy + h * a
        t.slope[k] = a * heavy / den
        t.rest[k] = (at_rest * heavy + a * (u.mass[k] * w + h * t.loop.force[k])) / den
        most = max(at_rest, 0.0) * t.path_friction[0]
        t.friction[k] = most / max(abs(t.rate[k]), CREEP)
        # Taut if the wire would still be stretched at the end of the step at present speeds.
        t.taut[k] = 1 if t.snapped[k] == 0 and s + h * (t.rate[k] + w) > 0.0 else 0


@inlined
def tension_at(t: WinchTable, k: int, rate: float) -> float:
    """Return the end tension of a taut tendon [N] for the path rate then [m/s]."""
    return t.rest[k] + t.slope[k] * rate


@kernel
def add_tendons(t: WinchTable, row: np.ndarray, h: float, M: np.ndarray, b: np.ndarray) -> None:
    """Add h G^T alpha G to M (n, n), lower triangle, and -G^T (T0 + alpha G v) to the forces b (n,).

    `row` (D,) maps joints to rows.
    """
    for k in range(t.taut.shape[0]):
        if t.taut[k] == 1:
            # Row k of G times (alpha + path damping): v+ = v + h a splits it into a force and an inertia.
            slope = t.slope[k] + t.friction[k]
            pull, stiff = t.rest[k] + slope * t.rate[k], h * slope
            for i in range(t.first[k], t.first[k + 1]):
                g = t.arms[k, t.crossed[i]]
                r = row[t.crossed[i]]
                b[r] -= g * pull
                g *= stiff
                for j in range(t.first[k], i + 1):
                    c = row[t.crossed[j]]
                    # Rows follow the tree, not the joints, so the entry may lie on either side of the diagonal.
                    M[max(r, c), min(r, c)] += g * t.arms[k, t.crossed[j]]


@kernel
def release_slack(t: WinchTable, v: np.ndarray) -> bool:
    """Release tendons that would push at joint velocities v (D,); True if any."""
    released = False
    for k in range(t.taut.shape[0]):
        if t.taut[k] == 1:
            rate = 0.0
            for i in range(t.first[k], t.first[k + 1]):
                rate += t.arms[k, t.crossed[i]] * v[t.crossed[i]]
            # A wire cannot push. A relative bound: round-off must not release a tendon at zero tension.
            if tension_at(t, k, rate) < -FREE * abs(t.rest[k]):
                t.taut[k], released = 0, True
    return released


@kernel
def move_winches(t: WinchTable, v: np.ndarray, h: float) -> None:
    """Advance tensions, winding speeds and wires for end velocities v (D,)."""
    for k in range(t.taut.shape[0]):
        rate = 0.0
        for i in range(t.first[k], t.first[k + 1]):
            rate += t.arms[k, t.crossed[i]] * v[t.crossed[i]]
        T = max(0.0, tension_at(t, k, rate)) if t.taut[k] == 1 else 0.0
        wind_wire(t, k, T, h)


@inlined
def wind_wire(t: WinchTable, k: int, T: float, h: float) -> None:
    """Advance winch k by h under the tension T [N]; motors drive up to their no-load speed."""
    u, w, force = t.unit, t.speed[k], t.loop.force[k]
    heavy = u.mass[k] + h * friction_rate(u, k, w)
    next_w = (u.mass[k] * w + h * (force - T)) / heavy
    # Beyond the no-load speed a motor gives no force: w ends at that speed or coasts above it.
    if force > 0.0 and next_w > u.speed[k]:
        next_w = max(u.speed[k], (u.mass[k] * w - h * T) / heavy)
    elif force < 0.0 and next_w < -u.speed[k]:
        next_w = min(-u.speed[k], (u.mass[k] * w - h * T) / heavy)
    t.tension[k], t.speed[k] = T, next_w
    t.wire[k] -= h * next_w


@kernel
def joint_torques(t: WinchTable, v: np.ndarray, out: np.ndarray) -> None:
    """Compute joint torques out (D,) [N m] at the end of the step, for the velocities v (D,) then."""
    out[:] = 0.0
    for k in range(t.taut.shape[0]):
        if t.taut[k] == 1:
            rate = 0.0
            for i in range(t.first[k], t.first[k + 1]):
                rate += t.arms[k, t.crossed[i]] * v[t.crossed[i]]
            pull = t.tension[k] + t.friction[k] * rate
            for i in range(t.first[k], t.first[k + 1]):
                out[t.crossed[i]] -= t.arms[k, t.crossed[i]] * pull


# -------- For an engine that is not compiled with them


@kernel
def explicit_tensions_at(table: Table[WinchTable], h: float, steps: int, out: np.ndarray) -> None:
    """Compute the tensions at the beginning of a step h [s] and advance the winches.

    Args:
        table: packed `WinchTable` with present `length` and `rate`.
        steps: since the loops last ran; 0: skip the loops.
        out: (M,) output: pulls including path friction [N].
    """
    t = unpack(table, WinchTable)
    if steps > 0:
        run_drives(t, h * steps)
    for k in range(t.tension.shape[0]):
        s = t.length[k] - t.wire[k] - t.slipped[k]
        T = 0.0
        if t.snapped[k] == 0 and s > 0.0:
            T = max(0.0, wire_tension(t.unit, k, s)[0] + t.unit.damping[k] * (t.rate[k] + t.speed[k]))
        # Friction raises the pull while the path lengthens (rate > 0) and lowers it while the path shortens.
        out[k] = T * (1.0 + t.path_friction[0] * np.tanh(t.rate[k] / CREEP))
        wind_wire(t, k, T, h)


# -------- For Python


class WinchErrors(NamedTuple):
    """Plant errors unknown to the controller.

    Attributes:
        moment_arm: standard deviation of factors on arms and length changes.
        stiffness: standard deviation of factors on wires.
        path_friction: mu, 0..0.3.
    """

    moment_arm: float = 0.0
    stiffness: float = 0.0
    path_friction: float = 0.0
    seed: int = 0


class WinchPlant:
    """Winches and wires of a robot's tendons.

    Attributes:
        plant: geometry and limits.
        joints: (D,) crossed joints.
        units: nominal muscle units.
        loop: drive loops, based on these.
        record: arrays of the kernels.
    """

    def __init__(
        self,
        robot: Robot,
        errors: WinchErrors | None = None,
        tendons: TendonSet | None = None,
        gains: LoopGains | None = None,
    ) -> None:
        """Build the winches.

        Args:
            tendons: true routing; default: the robot's file.
            gains: gains of the drive loops.

        Raises:
            RobotError: if the robot has no valid tendon file.
            ConfigError: if an error is out of range.
        """
        e = errors or WinchErrors()
        if not 0 <= e.path_friction <= 0.3:
            raise ConfigError(f"path friction must be in 0..0.3, got {e.path_friction:g}")
        self.plant = TendonPlant(robot, e.moment_arm, e.seed, tendons)
        p = self.plant
        self.names, self.joints = p.names, p.joints
        self.units = units_of(robot)
        m, d = len(self.names), len(self.joints)
        self.loop = WinchLoop(self.names, self.units, p.least, p.most, gains)
        crossed = p.geometry.crossed
        first = np.concatenate([[0], np.cumsum(crossed.sum(axis=1))]).astype(np.int64)
        listed = np.concatenate([np.flatnonzero(row) for row in crossed]).astype(np.int64)
        scale = TendonEncoders(m, EncoderErrors(scale=e.stiffness), e.seed + 1).factors
        table = self.loop.record.unit
        unit = table._replace(stiffness=table.stiffness * np.maximum(scale, 0.1))
        wire, speed, slipped, tension, sensed = (np.zeros(m) for _ in range(5))
        flags = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
        geometry = np.zeros(m), np.zeros(m), np.zeros((m, d)), p.factors, p.geometry.zero
        scratch = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m, dtype=np.int64)
        self.record = WinchTable(
            self.loop.record, unit, np.array([e.path_friction]), wire, speed, slipped, tension, sensed, *flags,
            *geometry, *scratch, first, listed,
        )  # fmt: skip

    def put(self, joints: np.ndarray, tensions: np.ndarray) -> None:
        """Rest the winches at joint angles (n,) [rad] with tensions (M,) [N], holding their wires."""
        r, u = self.record, self.record.unit
        lengths, arms = self.plant.measure(joints)
        r.length[:], r.arms[:] = lengths, arms
        stretch, bent = tensions / u.stiffness, u.stiffening > 0
        s1 = u.stiffening[bent]  # s (1 + s / s1) = T / k
        stretch[bent] = s1 * (np.sqrt(0.25 + stretch[bent] / s1) - 0.5)
        r.wire[:], r.speed[:], r.tension[:] = lengths - stretch, 0.0, np.where(r.snapped == 1, 0.0, tensions)
        r.slipped[:], r.rate[:] = 0.0, 0.0
        self.loop.reset()
        self.loop.begin(r.tension)
        self.loop.record.kind[:] = HOLD

    def states(self) -> WinchStates:
        """Return measured wire, winding speed and tension."""
        r = self.record
        return WinchStates(r.wire.copy(), r.speed.copy(), self.loop.seen.copy())

    # -- faults -------------------------------------------------------------------------------------------------

    def snap(self, tendon: int) -> None:
        """Tear a wire: it never pulls again."""
        self.record.snapped[tendon] = 1

    def slip(self, tendon: int, by: float) -> None:
        """Slip wire [m] off a drum (negative: onto), unseen by its encoder."""
        self.record.slipped[tendon] += by

    def deafen(self, tendon: int, deaf: bool = True) -> None:
        """Fail or restore a tension sensor; the drive's latch stays until reset."""
        self.record.deaf[tendon] = int(deaf)

    def release_wire(self, tendon: int, by: float) -> None:
        """Release slack wire [m], seen by the encoder."""
        self.record.wire[tendon] += by

    def clear_fault(self, tendon: int) -> None:
        """Clear all faults; a torn wire is reattached slack."""
        r = self.record
        if r.snapped[tendon] == 1:
            r.wire[tendon] = r.length[tendon]
        r.snapped[tendon], r.slipped[tendon], r.deaf[tendon] = 0, 0.0, 0
        self.loop.record.deaf[tendon] = 0


def units_of(robot: Robot) -> tuple[MuscleUnit, ...]:
    """Return the muscle units (M,) of a robot's tendons.

    Raises:
        RobotError: if the tendon file is invalid.
    """
    return tuple(t.unit or MuscleUnit() for t in tendons_of(robot))


def perturbed(tendons: TendonSet, deviation: float, seed: int) -> TendonSet:
    """Shift every point coordinate by a normal deviation [m].

    Raises:
        ConfigError: if it is outside 0..20 mm.
    """
    if not 0 <= deviation <= 0.02:
        raise ConfigError(f"attachments: a deviation of {deviation:g} m, must be 0..0.02")
    rng = np.random.default_rng(seed)

    def moved(step: ViaPoint | Wrap | Pulley) -> ViaPoint | Wrap | Pulley:
        if not isinstance(step, ViaPoint):
            return step
        xyz = np.array(step.xyz) + deviation * rng.standard_normal(3)
        return replace(step, xyz=(float(xyz[0]), float(xyz[1]), float(xyz[2])))

    return replace(tendons, tendons=tuple(replace(t, path=tuple(moved(s) for s in t.path)) for t in tendons))
