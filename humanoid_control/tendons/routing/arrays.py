"""Routing of tendons on a mechanism as plain arrays, which the kernels of this room read, and packed in two of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.kinematics.forward_kinematics import JointFrames

# Counts at the head of the whole numbers: bodies, points, tendons, segments, joints in the lists, solids.
SIZES = 6


class Routing(NamedTuple):
    """Everything that does not change with the posture.

    Body 0 is what the first joints are fixed to; body k is what joint k moves, in an order in which parents come
    first. Joints that are held still are part of the bodies. A segment is the path between two points, with a solid
    between them or not; it has three lists of joints: those that move one of its ends without the other, its start
    without the solid, and the solid without its end.

    Attributes:
        joints: (B,) frames of the joints; row 0 is none. parent: (B,) body that carries the joint.
        coordinate: (B,) its place in the joint vector; -1 for body 0.
        point_body, point: (P,), (P, 3) points in the frames of their bodies [m].
        first: (M + 1,) where the segments of each tendon begin.
        start, end: (S,) points. solid: (S,) or -1. share: (S,) 1 / divisor of the branch.
        list_first: (3 S + 1,) where each list begins; list_joint (L,) bodies; list_sign (L,): +1 moves the latter of
            the two, -1 the former.
        solid_body, solid_R, solid_p: (W,), (W, 3, 3), (W, 3) pose in its body; a cylinder is along z.
        ball: (W,) sphere. mode: (W,) FREE, SIDED or THROUGH. radius: (W,) [m]. side: (W, 3) in the solid's frame.
    """

    joints: JointFrames
    parent: np.ndarray
    coordinate: np.ndarray
    point_body: np.ndarray
    point: np.ndarray
    first: np.ndarray
    start: np.ndarray
    end: np.ndarray
    solid: np.ndarray
    share: np.ndarray
    list_first: np.ndarray
    list_joint: np.ndarray
    list_sign: np.ndarray
    solid_body: np.ndarray
    solid_R: np.ndarray
    solid_p: np.ndarray
    ball: np.ndarray
    mode: np.ndarray
    radius: np.ndarray
    side: np.ndarray


class Placed(NamedTuple):
    """Kinematics of one posture in the frame of body 0, in memory that is used again and again.

    Attributes:
        R, p: (B, 3, 3), (B, 3) bodies. a: (B, 3) axes of their joints. x: (P, 3) points.
        w, v: (B, 3) angular velocity of the bodies, velocity of their origins. xd: (P, 3) velocities of the points.
    """

    R: np.ndarray
    p: np.ndarray
    a: np.ndarray
    x: np.ndarray
    w: np.ndarray
    v: np.ndarray
    xd: np.ndarray


# -------- Packed arrays


def packed(routing: Routing) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers and real numbers of a routing, in the order in which `unpacked` reads them."""
    r, j = routing, routing.joints
    sizes = [len(x) for x in (r.parent, r.point, r.first, r.start, r.list_joint, r.solid_body)]
    sizes[2] -= 1
    whole = [r.parent, r.coordinate, j.slides, r.point_body, r.first, r.start, r.end, r.solid, r.list_first]
    whole += [r.list_joint, r.solid_body, r.ball, r.mode]
    real = (j.R, j.p, j.axis, r.point, r.share, r.list_sign, r.solid_R, r.solid_p, r.radius, r.side)
    ints = np.concatenate([np.asarray(x, dtype=np.int64).ravel() for x in (sizes, *whole)])
    return ints, np.concatenate([np.asarray(x, dtype=float).ravel() for x in real])


def packed_memory(routing: Routing) -> np.ndarray:
    """Memory for the kernels, for one thread; see Placed."""
    B, P = len(routing.parent), len(routing.point)
    memory = np.zeros(9 * B + 3 * (4 * B + 2 * P))
    memory[: 9 * B] = np.tile(np.eye(3).ravel(), B)
    return memory


@kernel
def unpacked(ints: np.ndarray, reals: np.ndarray) -> Routing:
    """The routing in the two arrays, without copying."""
    B, P, M, S, L, W = ints[0], ints[1], ints[2], ints[3], ints[4], ints[5]
    a = SIZES
    b = a + 3 * B
    c = b + P
    d = c + M + 1
    e = d + 3 * S
    f = e + 3 * S + 1
    g = f + L
    i = 9 * B
    j = i + 6 * B
    k = j + 3 * P
    m = k + S
    n = m + L
    o = n + 9 * W
    p = o + 3 * W
    q = p + W
    joints = JointFrames(
        reals[:i].reshape((B, 3, 3)),
        reals[i : i + 3 * B].reshape((B, 3)),
        reals[i + 3 * B : j].reshape((B, 3)),
        ints[a + 2 * B : b],
    )
    return Routing(
        joints,
        ints[a : a + B],
        ints[a + B : a + 2 * B],
        ints[b:c],
        reals[j:k].reshape((P, 3)),
        ints[c:d],
        ints[d : d + S],
        ints[d + S : d + 2 * S],
        ints[d + 2 * S : e],
        reals[k:m],
        ints[e:f],
        ints[f:g],
        reals[m:n],
        ints[g : g + W],
        reals[n:o].reshape((W, 3, 3)),
        reals[o:p].reshape((W, 3)),
        ints[g + W : g + 2 * W],
        ints[g + 2 * W : g + 3 * W],
        reals[p:q],
        reals[q : q + 3 * W].reshape((W, 3)),
    )


@kernel
def placed_in(ints: np.ndarray, memory: np.ndarray) -> Placed:
    """The memory of `packed_memory` by its parts."""
    B, P = ints[0], ints[1]
    a = 9 * B
    b = a + 6 * B
    c = b + 3 * P
    d = c + 6 * B
    return Placed(
        memory[:a].reshape((B, 3, 3)),
        memory[a : a + 3 * B].reshape((B, 3)),
        memory[a + 3 * B : b].reshape((B, 3)),
        memory[b:c].reshape((P, 3)),
        memory[c : c + 3 * B].reshape((B, 3)),
        memory[c + 3 * B : d].reshape((B, 3)),
        memory[d : d + 3 * P].reshape((P, 3)),
    )
