"""Mappings fitted to a group's geometry, by the kind of mapping, and how good they are where they were not fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from humanoid_control.tendons.mappings.exact_mapping import exact_mapping
from humanoid_control.tendons.mappings.group_geometry import lengths_only
from humanoid_control.tendons.mappings.mapping import JointMuscleMapping
from humanoid_control.tendons.mappings.neural_fit import fit_neural
from humanoid_control.tendons.mappings.parted_mapping import fit_polynomial_parts
from humanoid_control.tendons.mappings.polynomial_grid_fit import fit_polynomial_on_grid
from humanoid_control.tendons.mappings.posture_grid import check_cost, counts_by_range, random_postures
from humanoid_control.tendons.mappings.table_mapping import build_table
from humanoid_control.tendons.routing.geometry import TendonGeometry

KINDS = ("polynomial", "parts", "neural", "table")
POSTURES_PER_JOINT, ITERATIONS, ROWS = 600, 600, 100_000  # of the network; of the table
TRIED = 500  # postures that tell the accuracy


@dataclass(frozen=True)
class Accuracy:
    """Root mean square error of lengths [m] and of moment arms [m/rad] at postures of no fit."""

    length: float
    arm: float


def check_size(joints: int, kind: str = "polynomial") -> None:
    """Refuse a group that `fit` would refuse for its number of joints, before anything is compiled.

    Raises:
        ConfigError: more joints than a grid admits.
    """
    if kind == "polynomial":
        check_cost((2,) * joints, 1)


def fit(
    geometry: TendonGeometry, kind: str = "polynomial", show: Callable[[float], object] | None = None
) -> JointMuscleMapping:
    """A mapping of the geometry's joints and tendons, fitted to it over the joints' ranges.

    A polynomial is of degree 5, from a grid of 5 to 9 values for each joint by its range (section V-A). Parts are such
    polynomials, each over the joints alone that its tendons cross, from grids of 5 or 6 values. A network has two
    layers of 32; a table has 100,000 random postures.

    Args:
        kind: one of KINDS. show: called with the share done; answering False interrupts.

    Raises:
        ConfigError: more joints than a grid admits. MappingInterrupted: by `show`.
    """
    names = (geometry.joint_names, geometry.tendon_names, geometry.limits)
    lengths, made = lengths_only(geometry), geometry.model_hash

    def progress(share: float) -> bool | None:
        return None if show is None or show(share) is not False else False

    if kind == "polynomial":
        counts = counts_by_range(geometry.limits)
        return fit_polynomial_on_grid(lengths, *names, counts, model_hash=made, progress=progress)
    if kind == "parts":
        return fit_polynomial_parts(geometry.model, geometry.tendons, geometry.joint_names, progress=progress)
    if kind == "neural":
        postures = random_postures(geometry.limits, POSTURES_PER_JOINT * len(geometry.joint_names))
        return fit_neural(lengths, *names, postures, iterations=ITERATIONS, model_hash=made, progress=progress)
    return build_table(lengths, *names, random_postures(geometry.limits, ROWS), made)


def accuracy(mapping: JointMuscleMapping, geometry: TendonGeometry) -> Accuracy:
    """How far a mapping is from the geometry."""
    postures = random_postures(geometry.limits, TRIED, seed=1)
    (lengths, arms), (true, true_arms) = mapping.evaluate(postures), exact_mapping(geometry).evaluate(postures)
    return Accuracy(float(np.sqrt(np.mean((lengths - true) ** 2))), float(np.sqrt(np.mean((arms - true_arms) ** 2))))
