"""Fitting, accuracy and files of joint-muscle mappings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.documents import load_arrays
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.files import whole_file
from humanoid_control.tendons.mappings.exact import exact_mapping, fit_target
from humanoid_control.tendons.mappings.mapping import Array, FitReport, JointMuscleMapping, Progress
from humanoid_control.tendons.mappings.neural import NeuralMapping, Weights, fit_neural
from humanoid_control.tendons.mappings.per_tendon import PartedMapping, fit_polynomial_parts
from humanoid_control.tendons.mappings.polynomial import PolynomialMapping, fit_polynomial_on_grid, monomials
from humanoid_control.tendons.mappings.postures import check_cost, counts_by_range, random_postures
from humanoid_control.tendons.mappings.table import TableMapping, build_table
from humanoid_control.tendons.routing.geometry import TendonGeometry

KINDS = ("polynomial", "parts", "neural", "table")
POSTURES_PER_JOINT, ITERATIONS, ROWS = 600, 600, 100_000  # network: per joint, of L-BFGS; table: rows
TRIED = 500  # postures of an accuracy test


@dataclass(frozen=True)
class Accuracy:
    """RMS errors of lengths [m] and moment arms [m/rad] at unfitted postures."""

    length: float
    arm: float


def check_size(joints: int, kind: str = "polynomial") -> None:
    """Check that `fit_mapping` accepts the number of joints, without compilation.

    Raises:
        ConfigError: if there are too many joints for a grid.
    """
    if kind == "polynomial":
        check_cost((2,) * joints, 1)


def fit_mapping(geometry: TendonGeometry, kind: str = "polynomial", show: Progress | None = None) -> JointMuscleMapping:
    """Return a mapping fitted to the geometry over its joint ranges.

    'polynomial': degree 5, grid of 5 to 9 values per joint by range (Kawaharazuka 2018, V-A). 'parts': polynomials over
    each tendon's joints, 5 or 6 values. 'neural': two layers of 32. 'table': 100,000 random postures.

    Args:
        geometry: to fit.
        kind: one of KINDS.
        show: progress callback; returning False interrupts.

    Raises:
        UnknownNameError: if the kind is unknown.
        ConfigError: if there are too many joints for a grid.
        MappingInterrupted: by `show`.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of mapping", kind, KINDS)
    target = fit_target(geometry)
    if kind == "polynomial":
        return fit_polynomial_on_grid(target, counts_by_range(geometry.limits), progress=show)
    if kind == "parts":
        return fit_polynomial_parts(geometry.model, geometry.tendons, geometry.joint_names, progress=show)
    if kind == "neural":
        postures = random_postures(geometry.limits, POSTURES_PER_JOINT * len(geometry.joint_names))
        return fit_neural(target, postures, iterations=ITERATIONS, progress=show)
    return build_table(target, random_postures(geometry.limits, ROWS))


def accuracy(mapping: JointMuscleMapping, geometry: TendonGeometry) -> Accuracy:
    """Return the errors of a mapping at random postures."""
    postures = random_postures(geometry.limits, TRIED, seed=1)
    (lengths, arms), (true, true_arms) = mapping.evaluate(postures), exact_mapping(geometry).evaluate(postures)
    return Accuracy(float(np.sqrt(np.mean((lengths - true) ** 2))), float(np.sqrt(np.mean((arms - true_arms) ** 2))))


# -------- Files

_FORMAT = "humanoid_control joint-muscle mapping 1"
_UNITS = ("rad", "m")
_TEXTS = ("kind", "joint_names", "muscle_names", "model_hash")
_MOST = 1e12  # maximum of any stored number
_PART = "part{}_"  # prefix of the arrays of a part


def save_mapping(path: Path, mapping: JointMuscleMapping) -> None:
    """Write a fitted mapping as .npz, atomically.

    Raises:
        ConfigError: if the mapping is exact, or the file cannot be written.
    """
    content: dict[str, Any] = {"format": np.array(_FORMAT), "units": np.array(_UNITS), **_content(mapping)}
    with whole_file(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **content)


def _content(mapping: JointMuscleMapping) -> dict[str, Array]:
    if isinstance(mapping, PolynomialMapping):
        content = {"exponents": mapping.basis.exponents, "coefficients": mapping.coefficients}
    elif isinstance(mapping, NeuralMapping):
        content = mapping.weights._asdict()
    elif isinstance(mapping, TableMapping):
        content = {"postures": mapping.postures, "table": mapping.table}
    elif isinstance(mapping, PartedMapping):
        content = {"parts": np.array(len(mapping.parts))}
        for k, part in enumerate(mapping.parts):
            content |= {_PART.format(k) + key: value for key, value in _content(part).items()}
    else:
        raise ConfigError(f"mapping of kind '{mapping.kind}': keep its model file instead; only fitted ones are saved")
    fit = mapping.fit or FitReport(0, float("nan"), float("nan"), 0.0)
    return content | {
        "kind": np.array(mapping.kind),
        "joint_names": np.array(mapping.joint_names),
        "muscle_names": np.array(mapping.muscle_names),
        "limits": mapping.limits,
        "model_hash": np.array(mapping.model_hash),
        "fit": np.array([fit.samples, fit.rms, fit.zero_error, fit.seconds]),
    }


def load_mapping(
    path: Path,
    model_hash: str | None = None,
    joint_names: Sequence[str] | None = None,
    muscle_names: Sequence[str] | None = None,
) -> JointMuscleMapping:
    """Read a mapping; check the model hash, joints and tendons if given.

    Raises:
        ConfigError: if the file is missing, damaged, or of another model, joints or tendons.
    """
    data = _read(path)
    if str(data.get("format")) != _FORMAT or tuple(np.ravel(data.get("units", ()))) != _UNITS:
        raise ConfigError(f"mapping file {path}: is not a joint-muscle mapping in radians and metres; fit it again")
    try:
        mapping = _build(data)
    except (KeyError, IndexError, ValueError, TypeError, OverflowError, ConfigError) as error:
        raise ConfigError(f"mapping file {path}: is incomplete ({error}); fit it again") from None
    if model_hash is not None and mapping.model_hash != model_hash:
        raise ConfigError(
            f"mapping file {path}: was fitted for another robot or model ({mapping.model_hash[:12] or 'unnamed'}, here "
            f"{model_hash[:12]}); fit it for this one"
        )
    given = (("joints", mapping.joint_names, joint_names), ("tendons", mapping.muscle_names, muscle_names))
    for what, have, want in given:
        if want is not None and have != tuple(want):
            raise ConfigError(f"mapping file {path}: has other {what} ({', '.join(have)}); fit it for this group")
    return mapping


def _read(path: Path) -> dict[str, Array]:
    try:
        return load_arrays(path)
    except FileNotFoundError:
        raise ConfigError(f"mapping file {path}: not found; fit the mapping first") from None
    except (OSError, ValueError):
        raise ConfigError(f"mapping file {path}: is damaged or not a mapping; fit it again") from None


def _build(data: dict[str, Array], before: str = "") -> JointMuscleMapping:
    def of(key: str) -> Array:
        value = data[before + key]
        if (key in _TEXTS) != (value.dtype.kind == "U") or (key not in _TEXTS and value.dtype.kind not in "iuf"):
            raise ValueError(f"{before}{key} must be {'text' if key in _TEXTS else 'real numbers'}")
        if key not in (*_TEXTS, "fit") and not (np.isfinite(value).all() and np.abs(value).max(initial=0.0) < _MOST):
            raise ValueError(f"{before}{key} is not finite")
        return value

    samples, rms, zero, seconds = of("fit").tolist()
    joints, muscles = of("joint_names").tolist(), of("muscle_names").tolist()
    rest = (joints, muscles, of("limits"), str(of("model_hash")), FitReport(int(samples), rms, zero, seconds))
    kind = str(of("kind"))
    if kind == NeuralMapping.kind:
        return NeuralMapping(Weights(*(of(key) for key in Weights._fields)), *rest)
    if kind == TableMapping.kind:
        return TableMapping(of("postures"), of("table"), *rest)
    if kind == PartedMapping.kind:
        return PartedMapping([_build(data, before + _PART.format(k)) for k in range(int(of("parts")))], *rest)
    if kind != PolynomialMapping.kind:
        raise ValueError(f"unknown kind '{kind}'")
    exponents = of("exponents")
    basis = monomials(exponents.shape[1], int(exponents.sum(axis=1).max()), exponents.max(axis=0))
    return PolynomialMapping(basis, of("coefficients"), *rest)
