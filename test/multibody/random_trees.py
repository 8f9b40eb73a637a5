"""Random trees whose bodies share coordinates: rotors, loops of several coordinates, nested and adjacent, any base."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from humanoid_control.multibody import Body, Inertia, Model, free, prismatic, quadratic, revolute, rotor
from humanoid_control.multibody.layout import PRISMATIC, REVOLUTE

BASES = ("fixed", "quaternion", "euler")


def random_inertia(rng: np.random.Generator) -> Inertia:
    """A body of about 2 kg and 20 cm."""
    half = rng.normal(size=(3, 3)) * 0.1
    return Inertia.about_com(rng.uniform(0.5, 3.0), rng.normal(size=3) * 0.1, half @ half.T + 0.02 * np.eye(3))


def random_bodies(rng: np.random.Generator, n: int, base: str, sharing: float = 0.35) -> list[Body]:
    """A tree of n joints.

    Args:
        base: one of `BASES`.
        sharing: chance that a body has no coordinate of its own.
    """
    bodies: list[Body] = []
    if base != "fixed":
        turned, at = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
        bodies.append(Body("base", "", free("base", euler=base == "euler"), random_inertia(rng), turned, at))
    owners: list[tuple[str, str]] = []  # coordinate, and the parent of the body that owns it
    for k in range(n):
        where = {"A": Rotation.random(random_state=rng).as_matrix(), "r": rng.normal(size=3) * 0.2}
        parent = bodies[rng.integers(max(0, len(bodies) - 4), len(bodies))].name if bodies else ""
        if owners and rng.random() < sharing:
            name, carrier = owners[rng.integers(max(0, len(owners) - 6), len(owners))]
            if rng.random() < 0.4:
                shaft = Inertia(0.0, np.zeros(3), np.diag([1e-3, 1e-3, 1.5e-3]))
                bodies.append(Body(f"b{k}", carrier, rotor(name, rng.uniform(-20, 20), 0.3), shaft, **where))
                continue
            near = [c for c, _ in owners[-5:]]
            shared = list(dict.fromkeys([name, *rng.choice(near, min(len(near), rng.integers(0, 3)), replace=False)]))
            H = rng.normal(size=(len(shared), len(shared)))
            motion = PRISMATIC if rng.random() < 0.3 else REVOLUTE
            joint = quadratic(shared, 0.3, rng.normal(size=len(shared)), H + H.T, motion)
            bodies.append(Body(f"b{k}", carrier if rng.random() < 0.6 else parent, joint, random_inertia(rng), **where))
            continue
        joint = revolute(f"q{k}") if rng.random() < 0.8 else prismatic(f"q{k}")
        bodies.append(Body(f"b{k}", parent, joint, random_inertia(rng), **where))
        owners.append((f"q{k}", parent))
    return bodies


def geared_model(rng: np.random.Generator, n: int, base: str) -> Model:
    """A random tree of n joints with rotors and at least two loops."""
    while True:
        bodies = random_bodies(rng, n, base, sharing=0.5)
        model = Model(bodies)
        if any(b.inertia.mass == 0 for b in bodies) and len(model.loops) > 1:
            return model


def random_state(model: Model, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocity."""
    q = rng.uniform(-1.0, 1.0, model.nq)
    for at, _ in model.free:
        q[at + 3 : at + 7] /= np.linalg.norm(q[at + 3 : at + 7])
    return q, rng.normal(size=model.nv)


def random_wrenches(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Impressed on all bodies (bodies, 6) but shafts, which the engine lets feel none."""
    out = rng.normal(size=(len(model.bodies), 6))
    out[[b.inertia.mass == 0 for b in model.bodies]] = 0.0
    return out
