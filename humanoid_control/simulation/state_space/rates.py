"""Rates of the state-space models, compiled: bodies, contact layers, motors and gears in one call."""

from __future__ import annotations

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.backward import backward
from humanoid_control.multibody.configuration import configuration_rate
from humanoid_control.multibody.forward2 import forward2
from humanoid_control.multibody.layout import NW, RATE
from humanoid_control.multibody.motion import add_wrenches, forward1
from humanoid_control.multibody.prescribed import base_acceleration
from humanoid_control.simulation.contact.forces import contact_forces
from humanoid_control.simulation.contact.robot_contact import place_carriers
from humanoid_control.simulation.drives.motor import current_rate
from humanoid_control.simulation.drives.shafts import shaft_forces


@kernel
def full_rates(t, w, c, s, z, u, dz, nq, tau, armature, qdd, rate, force, sdot):
    """Rates dz of z = [v, q, layers, currents] under the voltages u; the rest is scratch memory.

    Args:
        t, w, c, s: `Tables`, `Work`, `ContactTable`, `ShaftTable`.
    """
    nv, p, m = qdd.shape[0], force.shape[0], u.shape[0]
    v, q = z[:nv], z[nv : nv + nq]
    currents = z[nv + nq + 3 * p :]
    tau[:] = 0.0
    forward1(t, q, v, w)
    _contact(t, w, c, z[nv + nq : nv + nq + 3 * p].reshape((p, 3)), force, sdot)
    for k in range(m):
        s.torque[k] = s.motor[k, 3] * currents[k]
    shaft_forces(t, w.W, s, q, v, 0.0, tau, armature)
    backward(t, tau, armature, w)
    forward2(t, w, qdd)
    configuration_rate(t, q, v, rate)
    dz[:nv] = qdd
    dz[nv : nv + nq] = rate
    _layer_rates(sdot, dz, nv + nq)
    for k in range(m):
        speed = w.W[(s.body[k] + 1) * NW + RATE]
        dz[nv + nq + 3 * p + k] = current_rate(currents[k], u[k], speed, s.motor[k])


@kernel
def reduced_rates(t, w, c, z, u, dz, nb, q, v, qdd, zero, rate, force, sdot):
    """Rates dz of z = [base v, base q, layers] while the joints move as u = [angles, velocities, accelerations]."""
    n, p = u.shape[0] // 3, force.shape[0]
    v[:6], q[:nb] = z[:6], z[6 : 6 + nb]
    q[nb:], v[6:], qdd[6:] = u[:n], u[n : 2 * n], u[2 * n :]
    forward1(t, q, v, w)
    _contact(t, w, c, z[6 + nb :].reshape((p, 3)), force, sdot)
    base_acceleration(t, zero, zero, w, qdd)
    configuration_rate(t, q, v, rate)
    dz[:6] = qdd[:6]
    dz[6 : 6 + nb] = rate[:nb]
    _layer_rates(sdot, dz, 6 + nb)


@inlined
def _contact(t, w, c, layers, force, sdot):
    if layers.shape[0] > 0:
        place_carriers(w.W, c)
        contact_forces(c, layers, force, sdot)
        add_wrenches(t, c.wrench, w)


@inlined
def _layer_rates(sdot, dz, at):
    for k in range(sdot.shape[0]):
        for a in range(3):
            dz[at + 3 * k + a] = sdot[k, a]
