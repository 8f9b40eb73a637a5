"""Primitives and collision shapes as solids, by definitions of their own: distances to them, points on them."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from humanoid_control.collision.shapes import Box, Capsule, EllipticCapsule, Sphere
from humanoid_control.robots.generate.urdf import Primitive

BALL = [np.arange(400) + 0.5, np.pi * (1 + 5**0.5)]


def signed_distance(p: Primitive, points: np.ndarray) -> np.ndarray:
    """Distance (N,) of points in the link frame to a primitive, negative inside."""
    local = (points - np.array(p.xyz)) @ rotation(tuple(p.rpy))
    if p.kind == "sphere":
        return np.linalg.norm(local, axis=1) - p.size[0]
    if p.kind == "box":
        out = np.abs(local) - np.array(p.size) / 2
    else:
        out = np.stack([np.hypot(local[:, 0], local[:, 1]) - p.size[0], np.abs(local[:, 2]) - p.size[1] / 2], 1)
    return np.linalg.norm(np.maximum(out, 0), axis=1) + np.minimum(out.max(axis=1), 0)


@cache
def rotation(rpy: tuple[float, ...]) -> np.ndarray:
    return Rotation.from_euler("xyz", rpy).as_matrix()


def depth(primitives: list[Primitive], points: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
    """Smallest signed distance (N,) to any of the primitives, and not above what is known already."""
    out = np.full(len(points), np.inf) if known is None else known.copy()
    for p in primitives:
        off = points - np.array(p.xyz)
        near = np.sqrt(np.einsum("ij,ij->i", off, off)) - enclosing_radius(p) < out  # others cannot be nearer to it
        if near.any():
            out[near] = np.minimum(out[near], signed_distance(p, points[near]))
    return out


def enclosing_radius(p: Primitive) -> float:
    if p.kind == "box":
        return float(np.linalg.norm(p.size)) / 2
    return float(p.size[0] if p.kind == "sphere" else np.hypot(p.size[0], p.size[1] / 2))


@cache
def unit_ball_surface() -> np.ndarray:
    k, golden = BALL
    polar = np.arccos(1 - 2 * k / len(k))
    return np.stack([np.cos(golden * k) * np.sin(polar), np.sin(golden * k) * np.sin(polar), np.cos(polar)], 1)


def surface(p: Primitive) -> np.ndarray:
    """Points (N, 3) on a primitive's surface, in the link frame."""
    if p.kind == "sphere":
        points = unit_ball_surface() * p.size[0]
    elif p.kind == "cylinder":
        t, z = np.meshgrid(np.linspace(0, 2 * np.pi, 24, endpoint=False), np.linspace(-0.5, 0.5, 11))
        side = np.stack([p.size[0] * np.cos(t), p.size[0] * np.sin(t), p.size[1] * z], -1).reshape(-1, 3)
        points = np.concatenate([side, side * [0.5, 0.5, 1]])
    else:
        u = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 9)] * 2), -1).reshape(-1, 2)
        points = np.concatenate([np.insert(u, k, s, axis=1) for k in range(3) for s in (0.5, -0.5)]) * p.size
    return Rotation.from_euler("xyz", p.rpy).apply(points) + p.xyz


def shape_surface(shape) -> np.ndarray:
    """Points on a collision shape's surface, from its own definition."""
    ball = unit_ball_surface()
    if isinstance(shape, Box):
        return surface(Primitive("box", shape.size, shape.center, shape.rpy, ""))
    if isinstance(shape, Sphere):
        return ball * shape.radius + shape.center
    if isinstance(shape, Capsule):
        t = np.linspace(0, 1, 15)[:, None]
        line = np.array(shape.p0) + t * (np.array(shape.p1) - np.array(shape.p0))
        points = (line[:, None] + shape.radius * ball[None]).reshape(-1, 3)
        return points[shape_distance(shape, points) > -1e-9]
    if isinstance(shape, EllipticCapsule):
        caps = ball * [shape.b, shape.a, shape.c]
        t, z = np.meshgrid(np.linspace(0, 2 * np.pi, 72), np.linspace(-0.5, 0.5, 25))
        side = np.stack([shape.b * np.cos(t), shape.a * np.sin(t), shape.l * z], -1).reshape(-1, 3)
        caps[:, 2] += np.sign(caps[:, 2]) * shape.l / 2
        return np.concatenate([caps, side]) + middle_of(shape)
    return ball * shape.semi_axes + shape.center


def middle_of(shape: EllipticCapsule) -> np.ndarray:
    return np.array(shape.top_center) - [0, 0, shape.l / 2]


def shape_distance(shape, points: np.ndarray) -> np.ndarray:
    """Distance (N,) of points to a collision shape, not above zero inside; to a few millimetres for ellipses."""
    if isinstance(shape, Box):
        return signed_distance(Primitive("box", shape.size, shape.center, shape.rpy, ""), points)
    if isinstance(shape, Sphere):
        return np.linalg.norm(points - shape.center, axis=1) - shape.radius
    if isinstance(shape, Capsule):
        p0, d = np.array(shape.p0), np.array(shape.p1) - np.array(shape.p0)
        t = np.clip((points - p0) @ d / (d @ d), 0, 1)
        return np.linalg.norm(points - p0 - t[:, None] * d, axis=1) - shape.radius
    if isinstance(shape, EllipticCapsule):
        q = points - middle_of(shape)
        q[:, 2] = np.maximum(np.abs(q[:, 2]) - shape.l / 2, 0)
        inside = np.linalg.norm(q / [shape.b, shape.a, shape.c], axis=1) <= 1
    else:
        inside = np.linalg.norm((points - shape.center) / np.array(shape.semi_axes), axis=1) <= 1
    return np.where(inside, 0.0, surface_tree(shape).query(points)[0])


@cache
def surface_tree(shape) -> cKDTree:
    return cKDTree(shape_surface(shape))


def mirrored(p: Primitive) -> Primitive:
    r, t, y = p.rpy
    return Primitive(p.kind, p.size, (p.xyz[0], -p.xyz[1], p.xyz[2]), (-r, t, -y), p.color)


def same_solid(a: Primitive, b: Primitive) -> bool:
    """Whether two primitives are one solid of one colour, however their orientation is written."""
    if (a.kind, a.color) != (b.kind, b.color) or not np.allclose(a.size, b.size) or not np.allclose(a.xyz, b.xyz):
        return False
    Ra, Rb = (Rotation.from_euler("xyz", p.rpy).as_matrix() for p in (a, b))
    axes = {"sphere": [], "cylinder": [2], "box": [0, 1, 2]}[a.kind]
    return all(abs(Ra[:, k] @ Rb[:, k]) > 1 - 1e-9 for k in axes)
