"""Centroidal momentum as a linear map of the velocity.

The angular momentum about the centre of mass c is the sum over the links (Schwienbacher 2014, eq. (7.1))

    L = sum_i  I_i w_i + m_i (r_i - c) x (dr_i/dt - dc/dt),      L = J_L v    (7.2)

and the linear momentum is p = M dc/dt = J_p v, in world axes. Links fixed to the world do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin


@dataclass(frozen=True)
class CentroidalMomentumMap:
    """Momentum at one configuration as a linear map of the velocity.

    Attributes:
        linear: J_p (3, nv) [kg m/s].
        angular: J_L (3, nv), about `center` [kg m^2/s].
        center: (3,) centre of mass, world [m].
    """

    linear: np.ndarray
    angular: np.ndarray
    center: np.ndarray


def centroidal_momentum_map(model: pin.Model, data: pin.Data, q: np.ndarray) -> CentroidalMomentumMap:
    """Return the map at q (nq,); `data` then holds joint placements and Jacobians."""
    A = pin.computeCentroidalMap(model, data, q).reshape(6, -1)
    return CentroidalMomentumMap(np.array(A[:3]), np.array(A[3:]), np.array(data.com[0]))


def centroidal_momentum_rate(
    model: pin.Model, data: pin.Data, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """Return the rate of linear and angular momentum (6,) = A a + (dA/dt) v [N, N m].

    It is the sum of external forces and their moment about the centre of mass; gravity gives (0, 0, -M g, 0, 0, 0).
    """
    return np.array(pin.computeCentroidalMomentumTimeVariation(model, data, q, v, a).vector)


def inertia_about_center(model: pin.Model, data: pin.Data, q: np.ndarray) -> np.ndarray:
    """Return the inertia (3, 3) at q about the centre of mass, world axes [kg m^2]."""
    pin.ccrba(model, data, q, np.zeros(model.nv))
    return np.array(data.Ig.inertia)
