"""The O(n) solver: three recursions over the tree with sub-systems (algorithm 2.1)."""

from __future__ import annotations

from humanoid_control.jit import kernel
from humanoid_control.multibody.backward import backward
from humanoid_control.multibody.forward2 import forward2
from humanoid_control.multibody.motion import add_wrenches, forward1


@kernel
def accelerate(t, q, v, tau, wrench, armature, w, qdd):
    """All three recursions; accelerations into qdd (nv).

    Args:
        t: `Tables`. w: `Work`. The others as for `ForwardDynamics`.
    """
    forward1(t, q, v, w)
    add_wrenches(t, wrench, w)
    backward(t, tau, armature, w)
    forward2(t, w, qdd)
