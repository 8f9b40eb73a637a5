"""Centroidal momentum: linear and angular momentum about the centre of mass, as maps of the velocity.

Angular momentum about the centre of mass c is the sum over the links (Schwienbacher 2014, eq. (7.1))

    L = sum_i  I_i w_i + m_i (r_i - c) x (dr_i/dt - dc/dt),      L = J_L v    (7.2)

and linear momentum is p = M dc/dt = J_p v. Both maps are the rows of what pinocchio calls the centroidal map, in axes
of the world. Which links: those that move. With a floating base these are all; with a fixed one the links that are held
are in neither sum, and c is the centre of mass of the moving links, which is what pinocchio computes too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin


@dataclass(frozen=True)
class CentroidalMomentumMap:
    """Momentum at one configuration as a linear map of the velocity.

    Attributes:
        linear: J_p (3, nv): p = J_p v [kg m/s].
        angular: J_L (3, nv): L = J_L v about `center` [kg m^2/s].
        center: (3,) centre of mass of the moving links, world [m].
    """

    linear: np.ndarray
    angular: np.ndarray
    center: np.ndarray


def centroidal_momentum_map(model: pin.Model, data: pin.Data, q: np.ndarray) -> CentroidalMomentumMap:
    """The map at a configuration.

    Args:
        model: with a fixed or floating base.
        data: workspace; afterwards it has the joint placements and Jacobians at q.
        q: (nq,).
    """
    A = pin.computeCentroidalMap(model, data, q).reshape(6, -1)
    return CentroidalMomentumMap(np.array(A[:3]), np.array(A[3:]), np.array(data.com[0]))


def centroidal_momentum_rate(
    model: pin.Model, data: pin.Data, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """Rate of linear and angular momentum (6,) = A a + (dA/dt) v [N, N m], at velocity v and acceleration a (nv,).

    By Newton and Euler it is the sum of all outer forces, and their moment about the centre of mass: gravity's is
    (0, 0, -M g, 0, 0, 0), the rest comes from the ground.
    """
    return np.array(pin.computeCentroidalMomentumTimeVariation(model, data, q, v, a).vector)


def inertia_about_center(model: pin.Model, data: pin.Data, q: np.ndarray) -> np.ndarray:
    """Inertia (3, 3) of the whole robot about its centre of mass, frozen at q, in axes of the world [kg m^2].

    Its last entry is I_zz of eq. (7.11), at a configuration such as standing.
    """
    pin.ccrba(model, data, q, np.zeros(model.nv))
    return np.array(data.Ig.inertia)
