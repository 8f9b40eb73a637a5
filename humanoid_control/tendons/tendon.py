"""Tendons, sets of tendons, and groups of joints estimated from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.tendons.unit import MuscleUnit

Vec3 = tuple[float, float, float]
SPHERE, CYLINDER = "sphere", "cylinder"


@dataclass(frozen=True)
class ViaPoint:
    """Point that the tendon passes, fixed on a link: `xyz` [m] in the link frame."""

    link: str
    xyz: Vec3


@dataclass(frozen=True)
class Wrap:
    """Solid that the tendon wraps around, or a ring that it passes through, between two points.

    As in MuJoCo, the tendon takes the shorter way without `side`, and passes on the side of a `side` outside the solid.
    A `side` inside makes a ring of the same radius.

    Attributes:
        kind: 'sphere' or 'cylinder' (infinite).
        link: carrier.
        centre: [m] in the link frame.
        radius: [m].
        axis: non-zero cylinder axis in the link frame.
        side: [m] in the link frame.
    """

    kind: str
    link: str
    centre: Vec3
    radius: float
    axis: Vec3 = (0.0, 0.0, 1.0)
    side: Vec3 | None = None

    def __post_init__(self) -> None:
        if self.kind not in (SPHERE, CYLINDER):
            raise UnknownNameError("wrapping solid", self.kind, (SPHERE, CYLINDER))
        if not self.radius > 0:
            raise RobotError(f"the radius of a {self.kind} must be above zero, got {self.radius:g}")
        if not float(np.linalg.norm(self.axis)) > 1e-9:
            raise RobotError("the axis of a cylinder must not be zero")


@dataclass(frozen=True)
class Pulley:
    """End of a path branch in a block and tackle; the next branch counts 1 / `divisor` of its length.

    The next point begins a new branch.
    """

    divisor: float

    def __post_init__(self) -> None:
        if not self.divisor > 0:
            raise RobotError(f"the divisor of a pulley must be above zero, got {self.divisor:g}")


@dataclass(frozen=True)
class Tendon:
    """Path and tension limits of a tendon.

    Attributes:
        name: of the tendon, its muscle or its motor.
        path: points in order; solids between points, pulleys between branches.
        group: tendon group; empty: none.
        min_tension: [N].
        max_tension: [N].
        unit: winch and wire; None: default unit.
    """

    name: str
    path: tuple[ViaPoint | Wrap | Pulley, ...]
    group: str = ""
    min_tension: float = 0.0
    max_tension: float = float("inf")
    unit: MuscleUnit | None = None

    def __post_init__(self) -> None:
        for branch in self.branches():
            where = f"tendon '{self.name}'"
            points = [isinstance(e, ViaPoint) for e in branch]
            if sum(points) < 2 or not points[0] or not points[-1]:
                raise RobotError(f"{where}: needs a point at both ends of its path")
            if any(not a and not b for a, b in itertools.pairwise(points)):
                raise RobotError(f"{where}: two consecutive wrapping solids; put a point between them")
        if not 0 <= self.min_tension <= self.max_tension:
            raise RobotError(
                f"tendon '{self.name}': needs 0 <= min_tension <= max_tension, "
                f"got {self.min_tension:g} and {self.max_tension:g}"
            )

    def branches(self) -> list[list[ViaPoint | Wrap]]:
        out: list[list[ViaPoint | Wrap]] = [[]]
        for element in self.path:
            if isinstance(element, Pulley):
                out.append([])
            else:
                out[-1].append(element)
        if len(out) > 1 and not out[0]:  # a pulley may come first, to divide the first branch
            del out[0]
        return out

    def divisors(self) -> list[float]:
        """Return the length divisor of each branch."""
        given = [e.divisor for e in self.path if isinstance(e, Pulley)]
        return given if self.path and isinstance(self.path[0], Pulley) else [1.0, *given]

    def links(self) -> tuple[str, ...]:
        """Return the links on the path, each once, in order."""
        return tuple(dict.fromkeys(e.link for e in self.path if not isinstance(e, Pulley)))


@dataclass(frozen=True)
class TendonGroup:
    """Joints estimated together from the lengths of some tendons.

    Attributes:
        own: joints estimated here.
        borrow: crossed joints that other groups estimate.
        tendons: names.
    """

    name: str
    own: tuple[str, ...]
    borrow: tuple[str, ...]
    tendons: tuple[str, ...]

    @property
    def joints(self) -> tuple[str, ...]:
        return self.own + self.borrow


@dataclass(frozen=True)
class JointCoupling:
    """Joint that follows a master joint of value x: q = c_0 + c_1 x + c_2 x^2 + ...

    Attributes:
        joint: following joint.
        master: empty: the joint is fixed at c_0.
        polynomial: c [rad, m].
    """

    joint: str
    master: str
    polynomial: tuple[float, ...]

    def value(self, x: float) -> float:
        """Return the joint value for the master's value x."""
        return float(np.polynomial.Polynomial(self.polynomial)(x))


def root_couplings(couplings: Sequence[JointCoupling]) -> dict[str, JointCoupling]:
    """Return the coupling of each following joint to the independent joint of its chain.

    Raises:
        RobotError: if a joint follows two others, or itself.
    """
    given: dict[str, JointCoupling] = {}
    for c in couplings:
        if c.joint in given:
            raise RobotError(f"joint '{c.joint}' follows both '{given[c.joint].master}' and '{c.master}'")
        given[c.joint] = c
    out = {}
    for c in couplings:
        master, polynomial = c.master, np.polynomial.Polynomial(c.polynomial)
        passed = [c.joint]
        while master in given:
            if master in passed:
                raise RobotError(f"joint '{c.joint}' follows itself: {' -> '.join([*passed, master])}")
            passed.append(master)
            polynomial = polynomial(np.polynomial.Polynomial(given[master].polynomial))
            master = given[master].master
        out[c.joint] = JointCoupling(c.joint, master, tuple(float(x) for x in np.atleast_1d(polynomial.coef)))
    return out


@dataclass(frozen=True)
class TendonSet:
    """Tendons of a robot, their groups, and couplings of crossed joints.

    Raises:
        RobotError: if a tendon appears twice, or a joint follows itself.
        UnknownNameError: if a group names an unknown tendon.
    """

    tendons: tuple[Tendon, ...]
    groups: dict[str, TendonGroup] = field(default_factory=dict)
    where: str = ""
    couplings: tuple[JointCoupling, ...] = ()

    def __post_init__(self) -> None:
        root_couplings(self.couplings)
        names = self.names
        if double := sorted({n for n in names if names.count(n) > 1}):
            raise RobotError(f"{self.where or 'tendons'}: the tendon '{double[0]}' appears twice")
        for group in self.groups.values():
            for name in group.tendons:
                self[name]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(t.name for t in self.tendons)

    def __len__(self) -> int:
        return len(self.tendons)

    def __iter__(self) -> Iterator[Tendon]:
        return iter(self.tendons)

    def __getitem__(self, name: str) -> Tendon:
        for t in self.tendons:
            if t.name == name:
                return t
        raise UnknownNameError("tendon", name, self.names, hint=f"(in {self.where})" if self.where else "")

    def only(self, names: Iterable[str]) -> TendonSet:
        """Return the named tendons in the given order, without groups.

        Raises:
            UnknownNameError: if a tendon is unknown.
        """
        return TendonSet(tuple(self[n] for n in names), where=self.where, couplings=self.couplings)


def joint_owners(groups: Sequence[TendonGroup]) -> dict[str, str]:
    """Return the group that estimates each joint.

    Raises:
        ConfigError: if a joint is owned twice, owned and borrowed by one group, or borrowed without an owner, or a
            group has no tendons.
    """
    owner: dict[str, str] = {}
    for g in groups:
        if not g.tendons or not g.own:
            raise ConfigError(f"group '{g.name}': has no {'joint of its own' if g.tendons else 'tendon'}")
        for names, what in ((g.joints, "joint"), (g.tendons, "tendon")):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                raise ConfigError(f"group '{g.name}': {what} '{twice[0]}' is listed twice")
        for joint in g.own:
            if joint in owner:
                raise ConfigError(f"joint '{joint}': owned by '{owner[joint]}' and '{g.name}'; one must borrow it")
            owner[joint] = g.name
    for g in groups:
        for joint in g.borrow:
            if joint not in owner:
                raise ConfigError(f"group '{g.name}': borrows '{joint}', which no group estimates; add its owner")
    return owner


def owner_table(groups: Sequence[TendonGroup]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return rows (joint, owning group, borrowing groups)."""
    owner = joint_owners(groups)
    return [(joint, name, tuple(g.name for g in groups if joint in g.borrow)) for joint, name in owner.items()]


def complete_groups(
    groups: Sequence[TendonGroup], crossed: NDArray[np.bool_], joint_names: Sequence[str], muscle_names: Sequence[str]
) -> tuple[TendonGroup, ...]:
    """Return the groups, each borrowing every joint that its tendons cross (M, D).

    An omitted joint counts as zero and biases the lengths. Omission helps only fitted mappings.
    """
    out = []
    for g in groups:
        rows = [list(muscle_names).index(m) for m in g.tendons]
        used = np.flatnonzero(np.any(crossed[rows], axis=0)).tolist()
        more = tuple(joint_names[j] for j in used if joint_names[j] not in g.joints)
        out.append(TendonGroup(g.name, g.own, g.borrow + more, g.tendons))
    joint_owners(out)
    return tuple(out)
