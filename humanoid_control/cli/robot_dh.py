"""`humanoid robots dh`: the Denavit-Hartenberg table of a chain, held against the URDF."""

from __future__ import annotations

import numpy as np

from humanoid_control.cli.output import console, print_json, table
from humanoid_control.robots import Robot
from humanoid_control.robots.denavit_hartenberg import DenavitHartenberg, dh_of
from humanoid_control.robots.kinematics_check import difference_from_urdf

POSTURES = 100


def print_dh(robot: Robot, tip: str, base: str | None, as_json: bool) -> int:
    """Print the table from a link to a point or link; the exit code."""
    t = dh_of(robot, tip, base)
    position, rotation, jacobian = difference_from_urdf(robot, t, POSTURES)
    rows = _rows(t)
    if as_json:
        print_json(
            {
                "robot": robot.name,
                "base": t.base,
                "tip": t.tip,
                "rows": rows,
                "base_to_frame_0": t.X_base_0.tolist(),
                "frame_n_to_tip": t.X_n_tip.tolist(),
                "difference_from_urdf": {
                    "postures": POSTURES,
                    "position_m": position,
                    "rotation": rotation,
                    "jacobian": jacobian,
                },
            }
        )
        return 0
    columns = ["joint", "a m", "alpha deg", "d m", "theta deg"]
    keys = ["joint", "a_m", "alpha_deg", "d_m", "theta_deg"]
    digits = [[r[keys[0]], *(f"{r[k]:.4f}" for k in keys[1:])] for r in rows]
    table(f"{robot.title}: {t.base} to {t.tip}, standard Denavit-Hartenberg parameters", columns, digits)
    console.print("theta is added to the joint's angle.")
    for name, X in (("base to frame 0", t.X_base_0), ("last frame to tip", t.X_n_tip)):
        console.print(f"{name}: xyz {_numbers(X[:3, 3])} m, rotation rows {'; '.join(_numbers(r) for r in X[:3, :3])}")
    console.print(
        f"largest difference from the URDF over {POSTURES} random postures: position {position:.1e} m, rotation "
        f"{rotation:.1e}, Jacobian {jacobian:.1e}"
    )
    return 0


def _rows(t: DenavitHartenberg) -> list[dict]:
    return [
        {"joint": name, "a_m": a, "alpha_deg": alpha, "d_m": d, "theta_deg": theta}
        for name, a, alpha, d, theta in zip(
            t.joint_names,
            *(v.round(12).tolist() for v in (t.a, np.degrees(t.alpha), t.d, np.degrees(t.theta))),
            strict=True,
        )
    ]


def _numbers(values: np.ndarray) -> str:
    return " ".join(f"{v + 0.0:.4g}" for v in np.round(values, 9))
