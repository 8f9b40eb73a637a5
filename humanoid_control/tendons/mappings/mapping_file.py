"""Joint-muscle mappings on disk: one file with all that is needed to refuse it for another robot."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array, FitReport, JointMuscleMapping
from humanoid_control.tendons.mappings.monomials import monomials
from humanoid_control.tendons.mappings.neural_mapping import NeuralMapping, Weights
from humanoid_control.tendons.mappings.polynomial_mapping import PolynomialMapping
from humanoid_control.tendons.mappings.table_mapping import TableMapping
from humanoid_control.whole_files import whole_file

_FORMAT = "humanoid_control joint-muscle mapping 1"
_UNITS = ("rad", "m")


def save_mapping(path: Path, mapping: JointMuscleMapping) -> None:
    """Write a fitted mapping as .npz; the file appears whole or not at all.

    Raises:
        ConfigError: the mapping is the geometry itself, which is kept as its model; or the file cannot be written.
    """
    if isinstance(mapping, PolynomialMapping):
        content = {"exponents": mapping.basis.exponents, "coefficients": mapping.coefficients}
    elif isinstance(mapping, NeuralMapping):
        content = dict(vars(mapping.weights))
    elif isinstance(mapping, TableMapping):
        content = {"postures": mapping.postures, "table": mapping.table}
    else:
        raise ConfigError(f"mapping of kind '{mapping.kind}': keep its model file instead; only fitted ones are saved")
    fit = mapping.fit or FitReport(0, float("nan"), float("nan"), 0.0)
    content |= {
        "format": np.array(_FORMAT),
        "kind": np.array(mapping.kind),
        "units": np.array(_UNITS),
        "joint_names": np.array(mapping.joint_names),
        "muscle_names": np.array(mapping.muscle_names),
        "limits": mapping.limits,
        "model_hash": np.array(mapping.model_hash),
        "fit": np.array([fit.samples, fit.rms, fit.zero_error, fit.seconds]),
    }
    with whole_file(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **content)


def load_mapping(
    path: Path,
    model_hash: str | None = None,
    joint_names: Sequence[str] | None = None,
    muscle_names: Sequence[str] | None = None,
) -> JointMuscleMapping:
    """Read a mapping, for the model with this hash and for these joints and tendons where given.

    Raises:
        ConfigError: no such file, not a mapping, damaged, or made for another model, other joints or other tendons.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            data = dict(file)
    except FileNotFoundError:
        raise ConfigError(f"mapping file {path}: does not exist; fit the mapping first") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        raise ConfigError(f"mapping file {path}: is damaged or no mapping; fit it again") from None
    if str(data.get("format")) != _FORMAT or tuple(data["units"].tolist()) != _UNITS:
        raise ConfigError(f"mapping file {path}: is no joint-muscle mapping in radians and metres; fit it again")
    made = str(data["model_hash"])
    if model_hash is not None and made != model_hash:
        raise ConfigError(
            f"mapping file {path}: was made for another robot or model ({made[:12] or 'unnamed'}, here "
            f"{model_hash[:12]}); fit it for this one"
        )
    joints, muscles = (tuple(data[key].tolist()) for key in ("joint_names", "muscle_names"))
    for what, have, want in (("joints", joints, joint_names), ("tendons", muscles, muscle_names)):
        if want is not None and have != tuple(want):
            raise ConfigError(f"mapping file {path}: has other {what} ({', '.join(have)}); fit it for this group")
    try:
        return _build(data, joints, muscles, made)
    except (KeyError, IndexError) as error:
        raise ConfigError(f"mapping file {path}: lacks {error}; fit it again") from error


def _build(data: dict[str, Array], joints: tuple[str, ...], muscles: tuple[str, ...], made: str) -> JointMuscleMapping:
    samples, rms, zero, seconds = data["fit"].tolist()
    rest = (joints, muscles, data["limits"], made, FitReport(int(samples), rms, zero, seconds))
    kind = str(data["kind"])
    if kind == NeuralMapping.kind:
        return NeuralMapping(Weights(*(data[key] for key in ("W1", "b1", "W2", "b2", "W3"))), *rest)
    if kind == TableMapping.kind:
        return TableMapping(data["postures"], data["table"], *rest)
    exponents = data["exponents"]
    basis = monomials(exponents.shape[1], int(exponents.sum(axis=1).max()), exponents.max(axis=0))
    return PolynomialMapping(basis, data["coefficients"], *rest)
