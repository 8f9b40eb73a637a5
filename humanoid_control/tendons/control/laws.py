"""Control laws of tendon-driven joints: hybrid, stiffness, torque and length, one tick each.

In the equations q_r, v_r, a_r are references, q angles, ID inverse dynamics, f a torque distribution, x wires, w
winding speeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import B1, F1, F2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError, NotANumberError, SizeError
from humanoid_control.numerics.finite import all_finite
from humanoid_control.tendons.control.body_image import BodyImage, CorrectedGeometry
from humanoid_control.tendons.control.commands import (
    HYBRID,
    LENGTH,
    OFF,
    TENSION,
    WinchCommand,
    WinchStates,
    no_command,
)
from humanoid_control.tendons.control.distribution import (
    DistributionTables,
    distribute,
    distribution_tables,
)
from humanoid_control.tendons.control.holdable import HoldableSet, ReferenceGovernor, tension_range
from humanoid_control.tendons.control.settings import NEEDS_ANGLES, WEIGHTS, TendonControllerSettings
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.unit import MuscleUnit

MISSED = 0.3  # [N m] missed torque above which a joint error is not integrated
SHARE = 0.9  # maximum reference speed, relative to the no-load speed of the winches
LEFT_OUT = 5.0  # [N] tension of a tendon that is left out
INTEGRAL = 0.1  # [rad] limit of the integral's part of an error
STRONGEST = 1e4  # [N] default maximum tension
WN, WI = 16.0, 2.0  # [1/s] of law torque: higher ones oscillate through the winch friction
TENSION_GAIN = 4.0  # kT of the drive's tension loop, which reduces the apparent winch mass
SMOOTH = 40.0  # [Hz] filter of the velocity from lengths
ACTIVATION, HEAT = WEIGHTS.index("activation"), WEIGHTS.index("heat")
RIDGE = 1e-5  # [m^2] regularisation of that velocity: weakly observed joints stay slow


class JointReference(NamedTuple):
    """Reference of D joints.

    Attributes:
        position: (D,) [rad].
        velocity: (D,) [rad/s].
        acceleration: (D,) [rad/s^2].
        effort: (D,) torque added to the model's [N m].
    """

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray


def reference_at(theta: np.ndarray) -> JointReference:
    """Return the reference of rest at theta (D,) [rad]."""
    return JointReference(np.array(theta, dtype=float), *np.zeros((3, len(theta))))


class TensionBounds(NamedTuple):
    """Bounds and weights of M tensions.

    Attributes:
        least: (M,) [N].
        most: (M,) [N].
        warm_most: (M,) continuous tension of the winch [N].
        warmth: (M,) 0..1.
        used: (M,) False: left out.
        dead: (M,) True: winch off.
        options: co-contraction [N], index in `WEIGHTS`.
    """

    least: F1
    most: F1
    warm_most: F1
    warmth: F1
    used: B1
    dead: B1
    options: F1


class LawTable(NamedTuple):
    """Arrays of one tick, for M tendons over D joints.

    Attributes:
        bounds: of tensions.
        shares: torque distribution.
        G: (M, D) moment arms [m].
        error: (D,) [rad].
        integral: (D,) [rad s].
        velocity: (D,) reference [rad/s].
        trusted: (D,) 1: the angle is valid.
        model: (D,) model torque [N m].
        load: (D,) torque carried beyond the model's [N m].
        used: (M,) 1: active.
        measured: (M,) tensions [N].
        fastest: (M,) maximum winding speed [m/s].
        speed: (M,) w_c [m/s].
        gains: kappa, k_i, load_cutoff, load_most.
    """

    bounds: TensionBounds
    shares: DistributionTables
    G: F2
    error: F1
    integral: F1
    velocity: F1
    trusted: F1
    model: F1
    load: F1
    used: F1
    measured: F1
    fastest: F1
    speed: F1
    gains: F1


@kernel
def bound_tensions_at(table: Table[LawTable]) -> None:
    """Fill range, bias and weights of `shares` from `bounds`.

    An unused tendon pulls with at most `LEFT_OUT`, a dead one not at all.
    """
    t = unpack(table, LawTable)
    b, s = t.bounds, t.shares
    co_contraction, weights = b.options[0], int(b.options[1])
    for i in range(t.used.shape[0]):
        used = b.used[i] and not b.dead[i]
        t.used[i] = 1.0 if used else 0.0
        # The thermal limit never falls below the minimum tension.
        if used:
            s.least[i] = b.least[i]
            s.most[i] = min(b.most[i], max(b.warm_most[i], b.least[i]))
            s.bias[i] = min(b.least[i] + co_contraction, s.most[i])
        else:
            s.least[i] = 0.0
            s.most[i] = s.bias[i] = 0.0 if b.dead[i] else LEFT_OUT
        s.weight[i] = 1.0
        # The weight grows with the winding's temperature, to unload hot winches.
        if weights == HEAT:
            s.weight[i] = 1.0 / max(1.0 - b.warmth[i], 0.05) ** 2
        elif weights == ACTIVATION:
            s.weight[i] = 1.0 / max(b.most[i], 1.0) ** 2


@kernel
def wind(t: LawTable, feedback: bool) -> float:
    """Fill `speed` with -G (v_r + kappa (e + k_i I)), the second term only with `feedback`.

    Returns:
        Common scale of all speeds, below 1 if a winch is too slow.
    """
    m, d = t.G.shape
    kappa, k_i, slow = t.gains[0], t.gains[1], 1.0
    for i in range(m):
        rate = 0.0
        for k in range(d):
            v = t.velocity[k]
            if feedback:
                v += t.trusted[k] * kappa * (t.error[k] + k_i * t.integral[k])
            rate += t.G[i, k] * v
        t.speed[i] = -rate
        # Unused winches do not limit the speed of the others.
        if t.used[i] > 0.0:
            slow = max(slow, abs(rate) / t.fastest[i])
    # A common scale keeps the direction of joint motion.
    for i in range(m):
        t.speed[i] /= slow
    return 1.0 / slow


@kernel
def hybrid(t: LawTable, dt: float) -> float:
    """Run law hybrid from error, velocity, model, measured and G; fill `speed` and `shares.f`.

    Returns:
        Scale of the winding speeds.
    """
    m, d = t.G.shape
    # e = q_r - q; I += dt e; tau_m = ID(q, v_r, a_r); tau_d += (1 - exp(-2 pi f_d dt)) (clip(-G^T T - tau_m,
    # +-load_most) - tau_d); f = distribute(G(q), tau_m + tau_d, b); w_c = -G (v_r + kappa (e + k_i I)).
    cutoff, most = t.gains[2], t.gains[3]
    share = 1.0 - math.exp(-2.0 * math.pi * cutoff * dt)
    end = INTEGRAL / max(t.gains[1], 1e-9)
    for k in range(d):
        # No integration where the tendons saturate (anti-windup).
        if t.trusted[k] > 0.0 and abs(t.shares.missed[k]) <= MISSED:
            t.integral[k] = min(max(t.integral[k] + dt * t.error[k], -end), end)
        carried = 0.0
        for i in range(m):
            carried -= t.G[i, k] * t.measured[i] * t.used[i]
        # tau_d is the torque now carried beyond the model. So f - T lies in the null space of G^T: the admittance
        # relaxes internal tension and never pays out a load.
        beyond = min(max(carried - t.model[k], -most), most)
        t.load[k] += share * (beyond - t.load[k])
        t.shares.tau[k] = t.model[k] + t.load[k]
    distribute(t.shares, t.G)
    return wind(t, True)


@kernel
def hybrid_at(table: Table[LawTable], dt: float) -> float:
    return hybrid(unpack(table, LawTable), dt)


@kernel(allocates=True)
def forward_at(table: Table[LawTable]) -> float:
    """Distribute `model` and wind with the references, without feedback; return the scale of the speeds."""
    t = unpack(table, LawTable)
    t.shares.tau[:] = t.model
    distribute(t.shares, t.G)
    return wind(t, False)


class TendonController:
    """Winch commands that move the joints along references.

    Attributes:
        settings: replaced by `change`.
        geometry: M tendons over D joints.
        units: (M,) winches.
        missed: (D,) torque not given [N m].
        slowed: speed scale of the last tick.
        held: joint with a held reference, and the reason; else empty.
        used: (M,) False: left out; set by the supervisor.
        dead: (M,) True: winch off.
        trusted: (D,) False: doubted angle.
        warmth: (M,) 0..1, for weights 'heat'.
    """

    def __init__(
        self,
        model: pin.Model,
        geometry: TendonGeometry,
        units: Sequence[MuscleUnit],
        settings: TendonControllerSettings | None = None,
        held: np.ndarray | None = None,
    ) -> None:
        """Create the controller.

        Args:
            model: robot with a fixed base.
            geometry: M tendons.
            units: winches (M,).
            settings: default: law hybrid.
            held: configuration (nq,) of joints without tendons; default: neutral.

        Raises:
            SizeError: if a unit is missing.
            ConfigError: if a minimum tension exceeds the maximum.
        """
        m, d = len(geometry.tendon_names), len(geometry.joint_names)
        if len(units) != m:
            raise SizeError(f"tendon controller: {m} tendons, {len(units)} units")
        self.model, self.units = model, tuple(units)
        self.geometry: TendonGeometry | CorrectedGeometry = geometry
        self._data = model.createData()
        self._v, self._a = np.zeros((2, model.nv))
        self._q = np.array(pin.neutral(model) if held is None else held, dtype=float)
        self._file = tension_range(geometry)
        most = np.minimum(self._file[1], STRONGEST)
        self.stiffness = np.array([u.stiffness for u in units])
        self.mass = np.array([u.mass for u in units])
        speeds = SHARE * np.array([u.speed for u in units])
        shares = distribution_tables(np.minimum(self._file[0], most), most, np.ones(m), d)
        nothing, everything = np.zeros(m, dtype=bool), np.ones(m, dtype=bool)
        bounds = TensionBounds(
            self._file[0].copy(), most.copy(), np.full(m, np.inf), np.zeros(m), everything, nothing, np.zeros(2)
        )
        self.packed = Packed(
            LawTable(
                bounds=bounds,
                shares=shares,
                G=np.zeros((m, d)),
                error=np.zeros(d),
                integral=np.zeros(d),
                velocity=np.zeros(d),
                trusted=np.ones(d),
                model=np.zeros(d),
                load=np.zeros(d),
                used=np.ones(m),
                measured=np.zeros(m),
                fastest=speeds,
                speed=np.zeros(m),
                gains=np.zeros(4),
            )
        )
        self.least, self.most, self.used, self.dead = bounds.least, bounds.most, bounds.used, bounds.dead
        self.warmth, self.warm_most, self.trusted = bounds.warmth, bounds.warm_most, np.ones(d, dtype=bool)
        self.command = no_command(m)
        self.lengths, self.missed = np.zeros(m), shares.missed
        self._rate, self._last_tension = np.zeros(d), np.full(m, np.nan)
        self.slowed, self.held = 1.0, ""
        self.joints = np.array([model.joints[model.getJointId(n)].idx_v for n in geometry.joint_names])
        self.settings = settings or TendonControllerSettings()
        self.governor = ReferenceGovernor(HoldableSet(model, geometry, held=held), self.settings.governor)
        self.change(self.settings)

    def change(self, settings: TendonControllerSettings) -> None:
        """Change the settings from the next tick on.

        Raises:
            ConfigError: if a minimum tension exceeds the maximum.
        """
        least, most = self._file[0] + settings.least, np.minimum(self._file[1], STRONGEST)
        if (least > most).any():
            k = int(np.argmax(least - most))
            name = self.geometry.tendon_names[k]
            raise ConfigError(
                f"tendon '{name}': least {self._file[0][k]:g} + {settings.least:g} N is above its maximum, "
                f"{most[k]:g} N"
            )
        s, t = settings, self.packed.record
        self.settings, self.least[:], self.most[:] = settings, least, most
        t.bounds.options[:] = s.co_contraction, WEIGHTS.index(s.weights)
        t.gains[:] = s.kappa, s.k_i, s.load_cutoff, s.load_most
        self.governor.most_missed = s.governor

    def use(self, image: BodyImage) -> None:
        """Correct lengths and moment arms by a body image from the next tick on."""
        base = self.geometry.base if isinstance(self.geometry, CorrectedGeometry) else self.geometry
        self.geometry = self.governor.holdable.geometry = CorrectedGeometry(image, base)

    def with_law(self, law: str) -> None:
        """Change only the law.

        Raises:
            UnknownNameError: if the law is unknown.
        """
        self.change(replace(self.settings, law=law))

    @property
    def reference(self) -> np.ndarray:
        """(D,) present reference [rad], after the governor and the speed scale."""
        return self.governor.reference

    def reset(self, angles: np.ndarray, states: WinchStates) -> None:
        """Start at rest at angles (D,) [rad]; present tensions count as load.

        Raises:
            SizeError: if a size is wrong.
            NotANumberError: if a value is not finite.
        """
        self._check(angles, states)
        t = self.packed.record
        self.governor.reset(np.asarray(angles, dtype=float))
        self.geometry.raw_into(self.reference, self.lengths, t.G)
        t.integral[:], t.shares.missed[:] = 0.0, 0.0
        self._torque(self.reference, np.zeros(len(angles)), np.zeros(len(angles)))
        most = self.settings.load_most
        t.load[:] = np.clip(-t.G.T @ states.tension - t.model, -most, most) if self.settings.load_cutoff else 0.0
        self._rate[:], self._last_tension[:] = 0.0, np.nan
        self.slowed, self.held = 1.0, ""

    def _check(self, angles: np.ndarray | None, states: WinchStates) -> None:
        for what, row, names in (
            ("angles", angles, self.geometry.joint_names),
            ("wires", states.wire, self.geometry.tendon_names),
            ("winding speeds", states.speed, self.geometry.tendon_names),
            ("tensions", states.tension, self.geometry.tendon_names),
        ):
            if row is None:
                continue
            if np.shape(row) != (len(names),):
                raise SizeError(f"tendon controller: expected {len(names)} {what}, got {np.shape(row)}")
            if not all_finite(np.asarray(row, dtype=float)):
                name = names[int(np.argmin(np.isfinite(row)))]
                raise NotANumberError(f"tendon controller: {what} of '{name}' is not a number")

    def step(
        self, reference: JointReference, angles: np.ndarray | None, states: WinchStates, dt: float = 0.004
    ) -> WinchCommand:
        """Return the winch commands, in reused arrays.

        Args:
            reference: joint reference.
            angles: (D,) [rad]; None for laws without angles.
            states: measured states.
            dt: period [s].

        Raises:
            SizeError: if a size is wrong.
            NotANumberError: if a value is not finite.
            ConfigError: if the law needs angles.
        """
        law, t = self.settings.law, self.packed.record
        if angles is None and law in NEEDS_ANGLES:
            raise ConfigError(f"law {law} needs angles: use stiffness or length without them")
        self._check(angles, states)
        for row in reference:
            if not all_finite(row):
                raise NotANumberError("tendon controller: the reference contains a non-finite value")
        t.trusted[:] = self.trusted
        bound_tensions_at(self.packed.table)
        moving = self._advance(reference)
        t.measured[:] = states.tension
        kind = HYBRID
        if law == "hybrid":
            assert angles is not None  # checked above
            self._hybrid(reference, moving, angles, dt)
        elif law == "torque":
            kind = TENSION
            assert angles is not None
            self._computed_torque(reference, angles, states, dt)
        else:
            kind = TENSION if law == "stiffness" else LENGTH
            self._by_lengths(reference, moving, states)
        c = self.command
        c.kind[:], c.speed[:] = kind, t.speed
        if kind != TENSION or law == "torque":
            c.tension[:] = t.shares.f
        c.kind[self.dead], c.speed[self.dead], c.tension[self.dead] = OFF, 0.0, 0.0
        return c

    # -- parts of a tick ----------------------------------------------------------------------------------------

    def _advance(self, wanted: JointReference) -> bool:
        """Advance the reference within trust, winch speed and governor; return True if not held."""
        before, g = self.reference, self.governor
        step = self.slowed * (wanted.position - before)
        step[~self.trusted] = 0.0
        if not step.any():
            self.held = "" if g.joint < 0 else self.held
            return g.joint < 0
        d = g.holdable.distribution
        used = self.used & ~self.dead
        d.least[:], d.most[:] = np.where(used, self.least, 0.0), np.where(used, self.most, 0.0)
        g.step(before + step)
        self.held = self._why_held() if g.joint >= 0 else ""
        return g.joint < 0

    def _why_held(self) -> str:
        g, names = self.governor, self.geometry.tendon_names
        full = ", ".join(names[k] for k in g.tendons[:3]) or "no tendon pulls in that direction"
        return f"{self.geometry.joint_names[g.joint]}: its tendons cannot hold it ({full})"

    def _torque(self, q: np.ndarray, v: np.ndarray, a: np.ndarray, more: np.ndarray | float = 0.0) -> None:
        """Fill `model` with inverse dynamics plus `more` (D,) [N m]."""
        self._q[self.joints], self._v[self.joints], self._a[self.joints] = q, v, a
        t = self.packed.record
        t.model[:] = pin.rnea(self.model, self._data, self._q, self._v, self._a)[self.joints] + more

    def _hybrid(self, reference: JointReference, moving: bool, angles: np.ndarray, dt: float) -> None:
        t = self.packed.record
        self.geometry.raw_into(angles, self.lengths, t.G)
        t.error[:] = self.reference - angles
        np.multiply(reference.velocity, self.trusted if moving else 0.0, out=t.velocity)
        self._torque(angles, t.velocity, reference.acceleration * float(moving), reference.effort)
        self.slowed = float(hybrid_at(self.packed.table, dt))

    def _by_lengths(self, reference: JointReference, moving: bool, states: WinchStates) -> None:
        t, c = self.packed.record, self.command
        # f = distribute(G(q_r), ID(q_r, v_r, a_r), b), w_c = -G v_r. Stiffness adds K (x + T/k - l(q_r)), within range;
        # length commands x_ref = l(q_r) - f / k.
        self.geometry.raw_into(self.reference, self.lengths, t.G)
        np.multiply(reference.velocity, float(moving), out=t.velocity)
        self._torque(self.reference, t.velocity, reference.acceleration * float(moving), reference.effort)
        self.slowed = float(forward_at(self.packed.table))
        stretched = states.wire + states.tension / self.stiffness
        pull = t.shares.f + self.settings.stiffness * (stretched - self.lengths) * t.used
        np.clip(pull, t.shares.least, t.shares.most, out=c.tension)
        c.length[:] = self.lengths - t.shares.f / self.stiffness

    def _computed_torque(self, reference: JointReference, angles: np.ndarray, states: WinchStates, dt: float) -> None:
        t = self.packed.record
        self.geometry.raw_into(angles, self.lengths, t.G)
        # tau = ID(q, v, a_c) + G^T (m / (1 + kT)) G a_c, a_c = a_r + wn^2 e + 2 wn (v_r - v) + wi wn^2 I.
        v = self._velocity(states, dt)
        e = (self.reference - angles) * t.trusted
        quiet = (np.abs(t.shares.missed) <= MISSED) & self.trusted
        t.integral[:] = np.clip(t.integral + dt * np.where(quiet, e, 0.0), -INTEGRAL / WI, INTEGRAL / WI)
        t.velocity[:] = reference.velocity
        a = reference.acceleration + WN**2 * (e + WI * t.integral) + 2 * WN * (reference.velocity - v)
        # Winch inertia at the joints; the tension loop divides the winch mass by 1 + kT.
        winches = t.G.T @ (self.mass / (1 + TENSION_GAIN) * (t.G @ a) * t.used)
        self._torque(angles, v, a, reference.effort + winches)
        self.slowed = float(forward_at(self.packed.table))

    def _velocity(self, states: WinchStates, dt: float) -> np.ndarray:
        """Return filtered joint velocities (D,) [rad/s] from the rates of the taut tendons."""
        t = self.packed.record
        change = np.where(np.isnan(self._last_tension), 0.0, states.tension - self._last_tension)
        self._last_tension[:] = states.tension
        # Path rate of an elastic wire: dT/dt / k - w. Ridge least squares on G v = rate.
        rate = change / dt / self.stiffness - states.speed
        taut = (states.tension > 0.5 * self.least) & self.used
        G = t.G * taut[:, None]
        A = G.T @ G
        A[np.diag_indices(len(A))] += RIDGE
        v = np.linalg.solve(A, G.T @ rate)
        self._rate += (1 - math.exp(-2 * math.pi * SMOOTH * dt)) * (v - self._rate)
        return self._rate

    # -- stability ----------------------------------------------------------------------------------------------

    def joint_stiffness(self, theta: np.ndarray, tensions: np.ndarray, stiffness: float) -> tuple[float, float]:
        """Return the smallest eigenvalues of the joint stiffness K_j and of G^T K G alone [N m/rad].

        K_j = G^T K G + sum_i T_i d^2 l_i / dq^2 + dg/dq; a negative value means buckling.

        Args:
            theta: (D,) [rad].
            tensions: (M,) [N].
            stiffness: K of each active tendon [N/m].
        """
        G = self.geometry.jacobian(theta)
        used = (self.used & ~self.dead).astype(float)
        elastic = (G.T * (stiffness * used)) @ G
        bent = np.array([tensions @ self.geometry.jacobian_directional(theta, e) for e in np.eye(len(theta))])
        self._q[self.joints] = theta
        dg = pin.computeGeneralizedGravityDerivatives(self.model, self._data, self._q)[np.ix_(self.joints, self.joints)]
        whole = elastic + 0.5 * (bent + bent.T) + 0.5 * (dg + dg.T)
        return float(np.linalg.eigvalsh(whole)[0]), float(np.linalg.eigvalsh(elastic)[0])
