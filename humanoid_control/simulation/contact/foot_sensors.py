"""What force-torque sensors in the feet feel: the forces at contact points, seen in the sensors' frames; compiled."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.simulation.contact.forces import arm_of
from humanoid_control.simulation.contact.ground import ground_height

Array = np.ndarray


@kernel
def sensor_wrenches(
    R: Array,
    r: Array,
    body: Array,
    points: Array,
    sensor: Array,
    sensor_body: Array,
    pose: Array,
    force: Array,
    ground: Array,
    out: Array,
) -> None:
    """What force-torque sensors in the feet feel from the ground, in their own frames.

    Args:
        sensor: (np,) which sensor a point loads, -1: none. sensor_body: (ns,) the body that carries a sensor.
        pose: (ns, 3, 4) rotation and origin of the sensor's frame in its body. force: (np, 3) of `contact_forces`.
        out: (ns, 6) written: torque [N m], then force [N], on the foot, about the sensor's origin in its axes.
    """
    out[:] = 0.0
    for p in range(body.shape[0]):
        k = sensor[p]
        if k < 0 or (force[p, 0] == 0.0 and force[p, 1] == 0.0 and force[p, 2] == 0.0):
            continue
        b, c = body[p], sensor_body[k]
        x, y, z = arm_of(R, b, points, p)
        _, nx, ny, nz = ground_height(ground, r[b, 0] + x, r[b, 1] + y)
        ox, oy, oz = pose[k, 0, 3], pose[k, 1, 3], pose[k, 2, 3]
        x += r[b, 0] - points[p, 3] * nx - r[c, 0] - (R[c, 0, 0] * ox + R[c, 0, 1] * oy + R[c, 0, 2] * oz)
        y += r[b, 1] - points[p, 3] * ny - r[c, 1] - (R[c, 1, 0] * ox + R[c, 1, 1] * oy + R[c, 1, 2] * oz)
        z += r[b, 2] - points[p, 3] * nz - r[c, 2] - (R[c, 2, 0] * ox + R[c, 2, 1] * oy + R[c, 2, 2] * oz)
        fx, fy, fz = force[p, 0], force[p, 1], force[p, 2]
        mx, my, mz = y * fz - z * fy, z * fx - x * fz, x * fy - y * fx
        for a in range(3):  # world to body to sensor
            for e in range(3):
                w = pose[k, e, a]
                out[k, a] += w * (R[c, 0, e] * mx + R[c, 1, e] * my + R[c, 2, e] * mz)
                out[k, 3 + a] += w * (R[c, 0, e] * fx + R[c, 1, e] * fy + R[c, 2, e] * fz)
