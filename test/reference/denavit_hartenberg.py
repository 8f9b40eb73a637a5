"""Placement of a joint by Denavit-Hartenberg parameters as Schwienbacher 2014 counts them (proximal)."""

from __future__ import annotations

import numpy as np


def dh_placement(a: float, alpha: float, d: float, theta: float) -> tuple[np.ndarray, np.ndarray]:
    """Constants A_k'p (3, 3) and r_pO (3,) of a body (Schwienbacher 2014, section 2.4.4).

    Go a along the parent's x and turn alpha about it, then go d along the new z and turn theta about it; the joint
    then turns about (or slides along) that z. `robots.denavit_hartenberg` has the other, distal convention.

    Args:
        a, d: [m]. alpha, theta: [rad].

    Returns:
        for `Body.A` and `Body.r`.
    """
    ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, ca, sa], [0.0, -sa, ca]])
    about_z = np.array([[ct, st, 0.0], [-st, ct, 0.0], [0.0, 0.0, 1.0]])
    return about_z @ about_x, np.array([a, -sa * d, ca * d])
