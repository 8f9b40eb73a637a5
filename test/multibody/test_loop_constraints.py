"""Loops by sub-systems against the same loops closed by pinocchio's constrained dynamics."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.multibody import ForwardDynamics
from test.multibody.screw_leg import knee_and_ankle


def states(base, rng):
    q = np.array([rng.uniform(-0.5, 0.5), rng.uniform(0.2, 1.4), *rng.uniform(-0.25, 0.25, 2)])
    v = rng.normal(size=4)
    if not base:
        return q, v
    turned = pin.Quaternion(pin.exp3(rng.normal(size=3))).coeffs()
    return np.concatenate([rng.normal(size=3), turned, q]), np.concatenate([rng.normal(size=6), v])


@pytest.mark.parametrize("base", [False, True], ids=["fixed", "floating"])
def test_screws_of_knee_and_ankle_accelerate_as_pinocchios_closed_chains(base):
    """pinocchio needs some inertia in the couplers, which have none: its error is linear in it, and is taken off."""
    leg, rng = knee_and_ankle(base), np.random.default_rng(4)
    assert [set(loop.bodies) for loop in leg.model.loops] == [
        {"knee", "unit", "knee_shaft"},
        {"ankle", "foot", "ankle_shaft0", "ankle_shaft1"},
    ]
    light, heavy = leg.chains(1e-7), leg.chains(2e-7)
    for _ in range(5):
        q, v = states(base, rng)
        tau = rng.normal(size=leg.model.nv) * 10
        ours = [ForwardDynamics(leg.model, s)(q, v, tau) for s in ("articulated_body", "sparse", "dense")]
        found = []
        for chains in (light, heavy):
            x, u = chains.close(q, v)
            found.append(chains.accelerate(x, u, chains.loads(tau))[chains.tree_v])
        limit = 2 * found[0] - found[1]
        scale = np.abs(limit).max()
        for qdd in ours:
            assert np.abs(qdd - limit).max() < 3e-9 * scale  # measured: below 4e-10
        assert np.abs(limit - found[0]).max() < 1e-6 * scale
