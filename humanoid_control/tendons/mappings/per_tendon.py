"""Joint-muscle mapping from parts, each tendon over its crossed joints only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.exact import fit_target
from humanoid_control.tendons.mappings.mapping import (
    Array,
    FitReport,
    Ints,
    JointMuscleMapping,
    MappingInterrupted,
    Progress,
)
from humanoid_control.tendons.mappings.polynomial import PolynomialMapping, fit_polynomial_on_grid
from humanoid_control.tendons.mappings.postures import counts_by_range
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonSet


class PartedMapping(JointMuscleMapping):
    """Mapping of tendons by parts over fewer joints, for groups too large for one grid.

    Attributes:
        parts: mappings that contain each tendon once.

    Raises:
        ConfigError: if a tendon is not in exactly one part, or a part has an unknown joint.
    """

    kind = "parts"

    def __init__(
        self,
        parts: Sequence[JointMuscleMapping],
        joint_names: Sequence[str],
        muscle_names: Sequence[str],
        limits: Array,
        model_hash: str = "",
        fit: FitReport | None = None,
    ) -> None:
        super().__init__(joint_names, muscle_names, limits, model_hash, fit)
        had = [m for p in parts for m in p.muscle_names]
        if sorted(had) != sorted(self.muscle_names):
            odd = sorted(set(had) ^ set(self.muscle_names)) or sorted({m for m in had if had.count(m) > 1})
            raise ConfigError(f"mapping of parts: tendon '{odd[0]}' must be in exactly one part")
        extra = [j for p in parts for j in p.joint_names if j not in self.joint_names]
        if extra:
            raise ConfigError(f"mapping of parts: a part has joint '{extra[0]}', which the whole does not have")
        self.parts = tuple(parts)
        self._joints = [np.array([self.joint_names.index(j) for j in p.joint_names]) for p in parts]
        self._muscles = [np.array([self.muscle_names.index(m) for m in p.muscle_names]) for p in parts]
        self._cells = [np.ix_(m, j) for m, j in zip(self._muscles, self._joints, strict=True)]
        self._l = [np.empty(len(m)) for m in self._muscles]
        self._G = [np.empty((len(m), len(j))) for m, j in zip(self._muscles, self._joints, strict=True)]

    def evaluate_into(self, theta: Array, lengths: Array, jacobian: Array) -> None:
        jacobian[:] = 0.0
        for p, joints, muscles, cells, length, G in self._each():
            p.evaluate_into(theta[joints], length, G)
            lengths[muscles] = length
            jacobian[cells] = G

    def directional_into(self, theta: Array, v: Array, out: Array) -> None:
        out[:] = 0.0
        for p, joints, _, cells, _, G in self._each():
            p.directional_into(theta[joints], v[joints], G)
            out[cells] = G

    def _each(self) -> Iterator[tuple[JointMuscleMapping, Ints, Ints, tuple[Ints, ...], Array, Array]]:
        return zip(self.parts, self._joints, self._muscles, self._cells, self._l, self._G, strict=True)


def fit_polynomial_parts(
    model: pin.Model,
    tendons: TendonSet,
    joint_names: Sequence[str],
    degree: int = 5,
    fewest: int = 5,
    most: int = 6,
    progress: Progress | None = None,
) -> PartedMapping:
    """Return grid polynomials of degree P, one for all tendons with the same crossed joints.

    Args:
        model: pinocchio model.
        tendons: to fit.
        joint_names: (D,) order of the whole; others are zero.
        degree: P.
        fewest: grid values of the smallest range.
        most: grid values of the largest range.

    Raises:
        ConfigError: if a tendon crosses too many joints for a grid.
        MappingInterrupted: by `progress`.
    """
    whole = TendonGeometry(model, tendons, tuple(joint_names))
    sets: dict[tuple[str, ...], list[str]] = {}
    for tendon, row in zip(whole.tendon_names, whole.crossed, strict=True):
        sets.setdefault(tuple(j for j, crossed in zip(joint_names, row, strict=True) if crossed), []).append(tendon)
    parts: list[PolynomialMapping] = []
    for joints, names in sets.items():
        g = TendonGeometry(model, tendons.only(tuple(names)), joints)
        counts = counts_by_range(g.limits, fewest, most)
        parts.append(fit_polynomial_on_grid(fit_target(g), counts, degree))
        if progress is not None and progress(len(parts) / len(sets)) is False:
            raise MappingInterrupted(f"mapping: interrupted after {len(parts)} of {len(sets)} parts; nothing was kept")
    fits = [(p.fit, len(p.muscle_names)) for p in parts if p.fit is not None]
    report = FitReport(
        sum(f.samples for f, _ in fits),
        float(np.sqrt(sum(n * f.rms**2 for f, n in fits) / len(whole.tendon_names))),
        max(f.zero_error for f, _ in fits),
        sum(f.seconds for f, _ in fits),
    )
    return PartedMapping(parts, joint_names, whole.tendon_names, whole.limits, whole.model_hash, report)
