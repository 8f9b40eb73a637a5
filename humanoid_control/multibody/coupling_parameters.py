"""Flat parameters of the couplings, from the points and axes of a mechanism."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.multibody.lever_couplings import four_bar, vergence_lever

Vector = Sequence[float] | np.ndarray


def unit(v: Vector, what: str) -> np.ndarray:
    """The direction (3,) of a vector.

    Raises:
        RobotError: not three finite numbers, or zero.
    """
    a = vector(v, what)
    size = float(np.linalg.norm(a))
    if size < 1e-12:
        raise RobotError(f"{what} must not be zero")
    return a / size


def vector(v: Vector, what: str) -> np.ndarray:
    """Three finite numbers as an array.

    Raises:
        RobotError: they are not.
    """
    a = np.asarray(v, dtype=float)
    if a.shape != (3,) or not np.isfinite(a).all():
        raise RobotError(f"{what} must be three numbers, got {v}")
    return a


def positive(x: float, what: str) -> float:
    """A finite length above zero.

    Raises:
        RobotError: it is not.
    """
    if not (np.isfinite(x) and x > 0):
        raise RobotError(f"{what} must be above zero, got {x:g}")
    return float(x)


def linear_parameters(ratio: float, offset: float = 0.0) -> np.ndarray:
    """For `linear`: phi = ratio q + offset."""
    if not np.isfinite(ratio) or ratio == 0:
        raise RobotError(f"a ratio must not be zero, got {ratio:g}")
    return np.array([ratio, offset], dtype=float)


def hinge_parameters(r_b: Vector, r_a: Vector, axis: Vector) -> np.ndarray:
    """For `hinge_screw` and `hinge_tilt`: hinge B and pivot A, both seen from the joint, in axes that agree at zero.

    The tilt is zero where the screw points as at joint angle zero.

    Args:
        r_b: hinge on the parent link (3,) [m].
        r_a: pivot on the child link (3,) [m].
        axis: of the joint (3,).
    """
    n = unit(axis, "the joint axis")
    r = vector(r_a, "r_a") - vector(r_b, "r_b")
    h = float(n @ r)
    first = unit(r - h * n, "the distance of hinge and pivot across the joint axis")
    plane = np.array([first, np.cross(n, first)])
    return np.concatenate([plane @ np.asarray(r_a, float), plane @ np.asarray(r_b, float), [h]])


def coupler_parameters(
    r_pc_a: Vector,
    axis_1: Vector,
    r_pc_f: Vector,
    axis_2: Vector,
    r_bot: Vector,
    r_top: Vector,
    direction: Vector,
    length: float,
    branch: int = -1,
) -> np.ndarray:
    """For `coupler_screw`, with the names of Schwienbacher 2014, eq. (3.23); all axes agree where both joints are zero.

    Args:
        r_pc_a: first joint, seen from the link of the screw [m]. axis_1: its axis.
        r_pc_f: second joint, seen from the first [m]; zero where the axes intersect. axis_2: its axis.
        r_bot: lower end of the coupler on the moved link, seen from the second joint [m].
        r_top: start of the screw, on its link [m]. direction: in which the carriage travels.
        length: of the coupler [m].
        branch: -1 for the carriage before the lower end of the coupler, +1 beyond it.
    """
    if branch not in (-1, 1):
        raise RobotError(f"branch must be -1 or 1, got {branch}")
    parts = [vector(r_pc_a, "r_pc_a") - vector(r_top, "r_top"), unit(axis_1, "the axis of the first joint")]
    parts += [vector(r_pc_f, "r_pc_f"), unit(axis_2, "the axis of the second joint"), vector(r_bot, "r_bot")]
    parts += [unit(direction, "the direction of the screw"), np.array([positive(length, "the coupler"), branch])]
    return np.concatenate(parts)


def four_bar_parameters(
    crank: float, coupler: float, rocker: float, ground: float, crank_zero: float, branch: int = 1
) -> np.ndarray:
    """For `four_bar`: lengths [m] and the crank's angle from the ground line at joint angle zero [rad].

    The rocker's angle is counted from where it is at joint angle zero.
    """
    if branch not in (-1, 1):
        raise RobotError(f"branch must be -1 or 1, got {branch}")
    lengths = [
        positive(x, f"the {k}")
        for k, x in zip(("crank", "coupler", "rocker", "ground"), (crank, coupler, rocker, ground), strict=True)
    ]
    par = np.array([*lengths, crank_zero, branch, 0.0])
    at_zero = four_bar(par, 0, 0.0)[0]
    par[6] = at_zero if np.isfinite(at_zero) else 0.0
    return par


def vergence_parameters(
    r_ax: float, lever: float, coupler: float, r_k: Vector, r_b: Vector, share: float = 0.5, branch: int = 1
) -> np.ndarray:
    """For `vergence_lever`: lengths [m], pivot r_k of the receptacle in the tilt frame, its lever r_b in its own frame.

    Both must lie in the x-z plane, as the source's design has it. The lever's angle is counted from where it is at
    vergence zero (3.43).
    """
    k, b = vector(r_k, "r_k"), vector(r_b, "r_b")
    if abs(k[1] + b[1]) > 1e-9:
        raise RobotError(f"r_k and r_b must put the receptacle's end into the x-z plane, got y = {k[1] + b[1]:g} m")
    if branch not in (-1, 1):
        raise RobotError(f"branch must be -1 or 1, got {branch}")
    lengths = [positive(lever, "the lever"), positive(coupler, "the coupler")]
    par = np.array([r_ax, *lengths, k[0], k[2], b[0], b[2], share, branch, 0.0])
    at_zero = vergence_lever(par, 0, 0.0)[0]
    par[9] = at_zero if np.isfinite(at_zero) else 0.0
    return par
