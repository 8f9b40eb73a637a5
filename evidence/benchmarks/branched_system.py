"""Dill(n): Featherstone's branched test system of 2^n links (Schwienbacher 2014, section 2.18), and its picture."""

from __future__ import annotations

import colorsys
import math

import numpy as np
import pinocchio as pin

from humanoid_control.multibody import layout as at
from humanoid_control.multibody.arrays import Arrays
from humanoid_control.multibody.kinematics_pass import kinematics_pass
from humanoid_control.multibody.model import ENVIRONMENT, Body, Inertia, Model, revolute
from humanoid_control.viewer import open_server
from humanoid_control.viewer.server import light_scene

SKEW = 1.0 / 3.0


def dill(n: int, skew: float = SKEW) -> Model:
    """Dill(n): a link of size n that carries Dill(n - 1), ..., Dill(0), each a step further out and turned further.

    Args:
        n: from 0; 2^n links.
        skew: turn about x of the i-th branch, as a multiple of i [rad]; 1/3 as printed, pi/3 as read by others.
    """
    bodies: list[Body] = []
    _grow(bodies, n, ENVIRONMENT, np.eye(3), np.zeros(3), skew)
    return Model(bodies)


def _grow(bodies: list[Body], n: int, parent: str, A: np.ndarray, r: np.ndarray, skew: float) -> None:
    name, scale = f"link{len(bodies)}", float(max(n, 1))
    # The printed moments are those about the joint's origin: 403/1200000 is the cylinder's and the mass's together.
    moments = np.diag([1 / 200000, 403 / 1200000, 403 / 1200000]) * scale**5
    inertia = Inertia(0.1 * scale**3, np.array([0.05 * scale, 0.0, 0.0]), moments)
    bodies.append(Body(name, parent, revolute(name), inertia, A, r))
    for i in range(1, n + 1):
        c, s = np.cos(skew * i), np.sin(skew * i)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]])
        _grow(bodies, i - 1, name, turn, np.array([0.1 * i, 0.0, 0.0]), skew)


def dill_state(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """The state at which run-times are measured: q = pi/6 and v = 1 for every joint."""
    return np.full(model.nq, np.pi / 6), np.ones(model.nv)


# -------- Cylinders as a still scene

LENGTH, RADIUS = 0.1, 0.01  # of the smallest link [m]; the others are larger by whole numbers
VIEW = 0.6  # [rad] the camera's angle from top to bottom
SIDES = 28
LIFT = 0.15  # [m] the lowest point above the floor


class DillView:
    """A page with all links; the larger a link, the warmer its colour."""

    def __init__(self, n: int, port: int, shadows: bool = True) -> None:
        """Open the page.

        Args:
            n: level; 2^n links.
            port: of the page.
            shadows: as `light_scene`.
        """
        model = dill(n)
        q, v = dill_state(model)
        arrays = Arrays(model)
        kinematics_pass(arrays.tables, q, v, arrays.work)
        rows = arrays.work.W.reshape(-1, at.NW)[1:]
        turns, places = rows[:, at.ROT : at.ROT + 9].reshape(-1, 3, 3), rows[:, at.POS : at.POS + 3]
        sizes = np.array([round((b.inertia.mass / 0.1) ** (1 / 3)) for b in model.bodies])
        ends = places + LENGTH * sizes[:, None] * turns[:, :, 0]
        laid = laid_out(np.concatenate([places, ends]))
        corners = np.concatenate([places, ends]) @ laid.T
        low, high = corners.min(axis=0), corners.max(axis=0)
        shift = np.array([-(low[0] + high[0]) / 2, -(low[1] + high[1]) / 2, LIFT - low[2]])
        self.low, self.high = low + shift, high + shift
        turns, places = laid @ turns, places @ laid.T + shift
        self.server = open_server(port)
        scene = self.server.scene
        scene.set_up_direction("+z")
        light_scene(scene, shadows)
        vertices, faces = cylinder_mesh()
        for k, (turn, place, size) in enumerate(zip(turns, places, sizes, strict=True)):
            quaternion = pin.Quaternion(turn)
            scene.add_mesh_simple(
                f"/link{k}",
                (size * vertices).astype(np.float32),
                faces,
                color=size_color(int(size), max(n, 1)),
                position=place,
                wxyz=(quaternion.w, quaternion.x, quaternion.y, quaternion.z),
            )

    def set_camera(self, aspect: float) -> None:
        """Lay the floor and put the camera where it sees all of it.

        Args:
            aspect: width over height of the picture.
        """
        size = self.high - self.low
        wide = 1.5 * float(size[0]) + 1.0
        self.server.scene.add_grid(
            "/floor", width=wide, height=wide, cell_size=0.25, section_size=1.0, shadow_opacity=0.3
        )
        camera, middle = self.server.initial_camera, (self.low + self.high) / 2
        far = 0.53 * max(size[2] + LIFT, float(size[0]) / aspect) / math.tan(VIEW / 2) + 0.5 * float(size[1])
        towards = np.array([-0.15, -1.0, 0.42])
        camera.position = tuple(middle + far * towards / np.linalg.norm(towards))
        camera.look_at = tuple(middle - [0.0, 0.0, 0.5 * LIFT])
        camera.up = (0.0, 0.0, 1.0)
        camera.fov = VIEW

    def stop(self) -> None:
        """Close the page."""
        self.server.stop()


def laid_out(points: np.ndarray) -> np.ndarray:
    """A turn (3, 3) after which points (n, 3) are longest along x, then along z: for the eye; gravity is off."""
    _, axes = np.linalg.eigh(np.cov(points.T))
    x, z = axes[:, 2], axes[:, 1]
    x = x if x[0] > 0 else -x
    return np.stack([x, np.cross(z, x), z])


def cylinder_mesh() -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of the smallest link: along x from its joint, edges rounded by a short cone."""
    profile = [(0.0, 0.0), (0.0, 0.8), (0.02, 1.0), (0.98, 1.0), (1.0, 0.8), (1.0, 0.0)]
    angles = np.linspace(0.0, 2 * np.pi, SIDES, endpoint=False)
    ring = np.column_stack([np.zeros(SIDES), np.cos(angles), np.sin(angles)])
    vertices = np.concatenate([RADIUS * r * ring + [LENGTH * x, 0.0, 0.0] for x, r in profile])
    faces = []
    for k in range(len(profile) - 1):
        for j in range(SIDES):
            a, b = k * SIDES + j, k * SIDES + (j + 1) % SIDES
            faces += [(a, b, a + SIDES), (b, b + SIDES, a + SIDES)]
    return vertices, np.array(faces, dtype=np.uint32)


def size_color(size: int, largest: int) -> tuple[int, int, int]:
    """Blue for the smallest links, over green, to red for the largest."""
    share = (size - 1) / max(largest - 1, 1)
    r, g, b = colorsys.hsv_to_rgb(0.58 * (1 - share), 0.72, 0.9)
    return int(255 * r), int(255 * g), int(255 * b)
