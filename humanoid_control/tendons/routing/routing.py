"""Tendons on a mechanism as flat arrays, which the kernels of this room read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Routing(NamedTuple):
    """Everything that does not change with the posture.

    Body 0 is what the first joints are fixed to; body k is what joint k moves, in an order in which parents come
    first. Joints that are held still are part of the bodies. A stretch is the way between two points of a path, with a
    solid between them or not; it has three lists of levers: which joints move one of its ends without the other, its
    start without the solid, and the solid without its end.

    Attributes:
        parent: (B,) body that carries the joint. coordinate: (B,) its place in the joint vector; -1 for body 0.
        R0, p0: (B, 3, 3), (B, 3) pose of the joint in its parent body at zero [m].
        axis: (B, 3) in that frame. slides: (B,) whether it is prismatic.
        point_body, point: (P,), (P, 3) points in the frames of their bodies [m].
        first: (M + 1,) where the stretches of each tendon begin.
        start, end: (S,) points. solid: (S,) or -1. share: (S,) 1 / divisor of the branch.
        lever_first: (3 S + 1,) where each list begins; lever_joint (L,) bodies; lever_sign (L,): +1 moves the latter of
            the two, -1 the former.
        solid_body, solid_R, solid_p: (W,), (W, 3, 3), (W, 3) pose in its body; a cylinder is along z.
        ball: (W,) sphere. mode: (W,) FREE, SIDED or THROUGH. radius: (W,) [m]. side: (W, 3) in the solid's frame.
    """

    parent: np.ndarray
    coordinate: np.ndarray
    R0: np.ndarray
    p0: np.ndarray
    axis: np.ndarray
    slides: np.ndarray
    point_body: np.ndarray
    point: np.ndarray
    first: np.ndarray
    start: np.ndarray
    end: np.ndarray
    solid: np.ndarray
    share: np.ndarray
    lever_first: np.ndarray
    lever_joint: np.ndarray
    lever_sign: np.ndarray
    solid_body: np.ndarray
    solid_R: np.ndarray
    solid_p: np.ndarray
    ball: np.ndarray
    mode: np.ndarray
    radius: np.ndarray
    side: np.ndarray


class Placed(NamedTuple):
    """Where everything is in one posture, in the frame of body 0: memory that is used again and again.

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
