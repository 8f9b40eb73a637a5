"""Winches that move a simulated robot by its tendons: motor, gear, drum, wire, friction, slack; linear-implicit steps.

Signs: G = dl/dq, tendons of tension T give the joint torques -G^T T, a winch that winds at w takes in wire, dx/dt = -w.

With the path length l(q), the wire x and what slipped off the drum, a tendon is stretched by s and pulls with T:

    s = l(q) - x - slipped;   T = max(0, k s + c (G v + w)) where s > 0;   m dw/dt = F - T - b w - f_c sign(w)
    M dv/dt = -h(q, v) - G^T (T (1 + mu tanh(G v / v0))) + everything else

A step of length h takes T at its end. With a = h k + c, b' = b + f_c / max(|w|, 1 mm/s) and den = m + h b' + h a the
winch's speed at the end can be eliminated, and of a taut tendon is left

    T+ = T0 + alpha G v+,   alpha = a (m + h b') / den,   T0 = (k s (m + h b') + a (m w + h F)) / den
    w+ = (m w + h (F - T+)) / (m + h b'),   x+ = x - h w+

so that stiff wires need no short steps. Friction along the path is a damping T mu / max(|G v|, v0) of the tendon. The
stretch is taken from l(q) - x at the beginning of every step and never integrated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.jit import inlined, kernel
from humanoid_control.numerics.array_types import F1, F2, I1
from humanoid_control.numerics.packed import Table, unpack
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendons import tendons_of
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors, TendonEncoders, TendonPlant
from humanoid_control.tendons.control.commands import HOLD, WinchStates
from humanoid_control.tendons.control.unit_table import UnitTable, friction_rate, wire_tension
from humanoid_control.tendons.control.winch_loop import LoopGains, LoopTable, WinchLoop, winch_forces
from humanoid_control.tendons.tendon import Pulley, TendonSet, ViaPoint, Wrap
from humanoid_control.tendons.unit import MuscleUnit

CREEP = 0.01  # [m/s] v0, along a path, over which friction changes its sign
FREE = 1e-6  # of a tension's size, below which it counts as none

# -------- Kernels


class WinchTable(NamedTuple):
    """Winches and wires of M tendons over D joints.

    Attributes:
        loop: of the drives.
        unit: the units as they are, which a drive may know wrongly.
        path_friction: (1,) mu.
        wire, speed: x [m], w [m/s].
        slipped: wire that left the drum unseen [m].
        tension: at the end of the step [N].
        sensed: what the sensors give [N].
        snapped, deaf: 1 where a wire is torn, where a sensor gives nothing.
        length, rate: of the paths [m], [m/s] at the beginning of the step.
        arms: (M, D) G there.
        factor, zero: of lengths and moment arms, and lengths where all joints are zero, as in `TendonPlant`.
        rest, slope, friction: T0, alpha, damping of the path.
        taut: 1 where a tendon pulls.
        first, crossed: (M + 1,) where the joints of each tendon begin in the list (L,) of those it crosses.
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
    """Apply the factors of the plant to the lengths and moment arms of the geometry."""
    for k in range(t.length.shape[0]):
        if t.factor[k] != 1.0:
            t.length[k] += (t.factor[k] - 1.0) * (t.length[k] - t.zero[k])
            for i in range(t.first[k], t.first[k + 1]):
                t.arms[k, t.crossed[i]] *= t.factor[k]


@inlined
def path_rates(t: WinchTable, v: np.ndarray) -> None:
    """Rates of the paths G v into `rate` [m/s], for joint velocities v (D,)."""
    for k in range(t.length.shape[0]):
        rate = 0.0
        for i in range(t.first[k], t.first[k + 1]):
            rate += t.arms[k, t.crossed[i]] * v[t.crossed[i]]
        t.rate[k] = rate


@kernel
def run_drives(t: WinchTable, h: float) -> None:
    """Let the sensors measure the tensions, and the drives' loops set the forces of the motors."""
    for k in range(t.tension.shape[0]):
        t.sensed[k] = 0.0 if t.deaf[k] == 1 else t.tension[k]
    winch_forces(t.loop, t.wire, t.speed, t.sensed, h)


@kernel
def predict_tensions(t: WinchTable, h: float) -> None:
    """T0 and alpha of every tendon, and which tendons may pull during a step of length h."""
    for k in range(t.tension.shape[0]):
        u, w, s = t.unit, t.speed[k], t.length[k] - t.wire[k] - t.slipped[k]
        at_rest, stiffness = wire_tension(u, k, s)
        a = h * stiffness + u.damping[k]
        heavy = u.mass[k] + h * friction_rate(u, k, w)
        den = heavy + h * a
        t.slope[k] = a * heavy / den
        t.rest[k] = (at_rest * heavy + a * (u.mass[k] * w + h * t.loop.force[k])) / den
        most = max(at_rest, 0.0) * t.path_friction[0]
        t.friction[k] = most / max(abs(t.rate[k]), CREEP)
        t.taut[k] = 1 if t.snapped[k] == 0 and s + h * (t.rate[k] + w) > 0.0 else 0


@inlined
def tension_at(t: WinchTable, k: int, rate: float) -> float:
    """Tension of a taut tendon at the end of the step [N], for the path's rate then [m/s]."""
    return t.rest[k] + t.slope[k] * rate


@kernel
def add_tendons(t: WinchTable, row: np.ndarray, h: float, M: np.ndarray, b: np.ndarray) -> None:
    """Add h G^T alpha G to a matrix, and -G^T (T0 + alpha G v) to the forces; see the top of the file.

    Args:
        row: (D,) of M and b for each joint.
        M: (n, n), its lower triangle.
        b: (n,).
    """
    for k in range(t.taut.shape[0]):
        if t.taut[k] == 1:
            slope = t.slope[k] + t.friction[k]
            pull, stiff = t.rest[k] + slope * t.rate[k], h * slope
            for i in range(t.first[k], t.first[k + 1]):
                g = t.arms[k, t.crossed[i]]
                r = row[t.crossed[i]]
                b[r] -= g * pull
                g *= stiff
                for j in range(t.first[k], i + 1):
                    c = row[t.crossed[j]]
                    M[max(r, c), min(r, c)] += g * t.arms[k, t.crossed[j]]


@kernel
def release_slack(t: WinchTable, v: np.ndarray) -> bool:
    """Leave out the tendons that would have to push at joint velocities v (D,); True if there are any."""
    released = False
    for k in range(t.taut.shape[0]):
        if t.taut[k] == 1:
            rate = 0.0
            for i in range(t.first[k], t.first[k + 1]):
                rate += t.arms[k, t.crossed[i]] * v[t.crossed[i]]
            if tension_at(t, k, rate) < -FREE * abs(t.rest[k]):
                t.taut[k], released = 0, True
    return released


@kernel
def move_winches(t: WinchTable, v: np.ndarray, h: float) -> None:
    """Tensions, winding speeds and wires at the end of the step, whose joint velocities are v (D,)."""
    for k in range(t.taut.shape[0]):
        rate = 0.0
        for i in range(t.first[k], t.first[k + 1]):
            rate += t.arms[k, t.crossed[i]] * v[t.crossed[i]]
        T = max(0.0, tension_at(t, k, rate)) if t.taut[k] == 1 else 0.0
        wind_wire(t, k, T, h)


@inlined
def wind_wire(t: WinchTable, k: int, T: float, h: float) -> None:
    """Move winch k on by h under the tension T [N]; a motor drives no faster than its speed without load."""
    u, w, force = t.unit, t.speed[k], t.loop.force[k]
    heavy = u.mass[k] + h * friction_rate(u, k, w)
    next_w = (u.mass[k] * w + h * (force - T)) / heavy
    if force > 0.0 and next_w > u.speed[k]:
        next_w = max(u.speed[k], (u.mass[k] * w - h * T) / heavy)
    elif force < 0.0 and next_w < -u.speed[k]:
        next_w = min(-u.speed[k], (u.mass[k] * w - h * T) / heavy)
    t.tension[k], t.speed[k] = T, next_w
    t.wire[k] -= h * next_w


@kernel
def joint_torques(t: WinchTable, v: np.ndarray, out: np.ndarray) -> None:
    """Torques of the tendons on the joints at the end of the step, into out (D,) [N m]; v: velocities then (D,)."""
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
    """Tensions of the wires at the beginning of a step, those of the winches at its end.

    Args:
        table: packed `WinchTable`, with `length` and `rate` of the paths as they are now.
        h: length of the step [s].
        steps: since the loops ran last; 0: they run now.
        out: (M,) filled: pulls on the paths, friction along them included [N].
    """
    t = unpack(table, WinchTable)
    if steps > 0:
        run_drives(t, h * steps)
    for k in range(t.tension.shape[0]):
        s = t.length[k] - t.wire[k] - t.slipped[k]
        T = 0.0
        if t.snapped[k] == 0 and s > 0.0:
            T = max(0.0, wire_tension(t.unit, k, s)[0] + t.unit.damping[k] * (t.rate[k] + t.speed[k]))
        out[k] = T * (1.0 + t.path_friction[0] * np.tanh(t.rate[k] / CREEP))
        wind_wire(t, k, T, h)


# -------- For Python


class WinchErrors(NamedTuple):
    """What a plant has that its controller does not know.

    Attributes:
        moment_arm: standard deviation of the factors of moment arms and changes of length.
        stiffness: standard deviation of the factors of the wires' stiffness.
        path_friction: mu, 0..0.3.
        seed: of the factors.
    """

    moment_arm: float = 0.0
    stiffness: float = 0.0
    path_friction: float = 0.0
    seed: int = 0


class WinchPlant:
    """Winches and wires of a robot's tendons.

    Attributes:
        names: of M tendons.
        plant: their geometry and limits.
        joints: (D,) which joints of the robot they cross.
        units: the muscle units that the robot's file names.
        loop: of the drives, which knows these units.
        record: arrays of the kernels.
    """

    def __init__(
        self,
        robot: Robot,
        errors: WinchErrors | None = None,
        tendons: TendonSet | None = None,
        gains: LoopGains | None = None,
    ) -> None:
        """Lay out the winches of a robot.

        Args:
            robot: with a file of tendons.
            errors: of this plant.
            tendons: routed as they really are; default: as the robot's file has them.
            gains: of the drives' loops.

        Raises:
            RobotError, UnknownNameError: the robot has no tendons, or a file of them with an error.
            ConfigError: an error out of range.
        """
        e = errors or WinchErrors()
        if not 0 <= e.path_friction <= 0.3:
            raise ConfigError(f"path friction is {e.path_friction:g}, must be 0..0.3")
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
        """Put the winches at rest at joint angles (n,) [rad] with tensions (M,) [N], servoed to that wire."""
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
        """What the drives measure: wire by the drum's encoder, winding speed, tension as the drive believes it."""
        r = self.record
        return WinchStates(r.wire.copy(), r.speed.copy(), self.loop.seen.copy())

    # -- faults -------------------------------------------------------------------------------------------------

    def snap(self, tendon: int) -> None:
        """Tear a wire: it never pulls again, whatever its winch does."""
        self.record.snapped[tendon] = 1

    def slip(self, tendon: int, by: float) -> None:
        """Let wire [m] off a drum without its encoder turning; negative: onto it."""
        self.record.slipped[tendon] += by

    def deafen(self, tendon: int, deaf: bool = True) -> None:
        """Have a tension sensor give zero, or work again; the drive's latch stays until its loop is reset."""
        self.record.deaf[tendon] = int(deaf)

    def let_out(self, tendon: int, by: float) -> None:
        """Turn a drum so that wire [m] hangs loose; its encoder sees that."""
        self.record.wire[tendon] += by

    def mend(self, tendon: int) -> None:
        """Undo all faults of a tendon; a torn wire is knotted where the path is now, so that it begins slack."""
        r = self.record
        if r.snapped[tendon] == 1:
            r.wire[tendon] = r.length[tendon]
        r.snapped[tendon], r.slipped[tendon], r.deaf[tendon] = 0, 0.0, 0
        self.loop.record.deaf[tendon] = 0


def units_of(robot: Robot) -> tuple[MuscleUnit, ...]:
    """Muscle units (M,) of a robot's tendons: those of its file, else the default unit.

    Raises:
        RobotError, UnknownNameError: the file has an error.
    """
    return tuple(t.unit or MuscleUnit() for t in tendons_of(robot))


def perturbed(tendons: TendonSet, deviation: float, seed: int) -> TendonSet:
    """Tendons whose points are away from where the file has them, each coordinate by a normal deviation [m].

    Raises:
        ConfigError: a deviation below 0, or above 20 mm.
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
