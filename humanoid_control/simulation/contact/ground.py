"""Shape of the ground (plane, stairs, waves, height grid) as a flat array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.errors import ConfigError
from humanoid_control.files import FARTHEST

PLANE, GRID = 0.0, 1.0
MAX_HEIGHTS = 4_000_000
CLOSEST = 1e-4  # [m] between heights


@kernel
def ground_height(ground: np.ndarray, x: float, y: float) -> tuple[float, float, float, float]:
    """Return height z [m] and upward unit normal nx, ny, nz at (x, y) of the world.

    Args:
        ground: plane: [0, height, dz/dx, dz/dy]; grid: [1, x0, y0, dx, dy, nx, ny, heights (nx * ny), y fastest],
            bilinear, constant beyond the edges.
    """
    if ground[0] == 0.0:
        sx, sy = ground[2], ground[3]
        z = ground[1] + sx * x + sy * y
    else:
        nx, ny = int(ground[5]), int(ground[6])
        i, u, inside_x = _cell((x - ground[1]) / ground[3], nx)
        j, w, inside_y = _cell((y - ground[2]) / ground[4], ny)
        # Heights follow seven header entries.
        k = 7 + i * ny + j
        z00, z01, z10, z11 = ground[k], ground[k + 1], ground[k + ny], ground[k + ny + 1]
        z = (1 - u) * ((1 - w) * z00 + w * z01) + u * ((1 - w) * z10 + w * z11)
        # Slopes of the bilinear patch; zero beyond the edge, where the height continues constant.
        sx = inside_x * ((1 - w) * (z10 - z00) + w * (z11 - z01)) / ground[3]
        sy = inside_y * ((1 - u) * (z01 - z00) + u * (z11 - z10)) / ground[4]
    # n = (-dz/dx, -dz/dy, 1), normalised.
    nz = 1.0 / np.sqrt(1.0 + sx * sx + sy * sy)
    return z, -sx * nz, -sy * nz, nz


@inlined
def _cell(a: float, n: int) -> tuple[int, float, float]:
    """Return cell, fraction in it, and 1.0 inside the grid, else 0.0."""
    # `not a > 0` also catches NaN, which must not become an index.
    if not a > 0.0:
        return 0, 0.0, 0.0
    # Beyond the last height: end of the last cell, without slope.
    if a >= n - 1:
        return n - 2, 1.0, 0.0
    i = int(a)
    return i, a - i, 1.0


@dataclass(frozen=True)
class Ground:
    """Shape of the ground.

    Attributes:
        name: one word for messages.
        array: input of `ground_height`, (4,) for a plane, (7 + nx * ny,) for a grid.
    """

    name: str
    array: np.ndarray

    @classmethod
    def plane(cls, height: float = 0.0, slope: float = 0.0, direction: float = 0.0) -> Ground:
        """Create a plane through (0, 0, height) with `slope` [rad] upward toward `direction` [rad from x].

        Raises:
            ConfigError: if the slope exceeds 60 degrees.
        """
        _finite("plane", height=height, slope=slope, direction=direction)
        if abs(slope) > np.pi / 3:
            raise ConfigError(f"ground 'plane': slope must be within 60 degrees, got {np.degrees(slope):g}")
        rise = np.tan(slope)
        return cls("plane", np.array([PLANE, height, rise * np.cos(direction), rise * np.sin(direction)]))

    @classmethod
    def stairs(cls, rise: float, run: float, steps: int = 1, start: float = 0.5, edge: float = 0.01) -> Ground:
        """Create steps across x, flat before and after.

        Args:
            rise: per step, negative downstairs [m].
            run: depth of a step [m].
            start: x of the first edge [m].
            edge: length of a rising edge [m].
        """
        _finite("stairs", rise=rise, run=run, steps=steps, start=start, edge=edge)
        if not (0 < edge < run and 1 <= steps <= 1000):
            raise ConfigError(
                f"ground 'stairs': needs 0 < edge < run and 1 to 1000 steps, got {edge:g}, {run:g}, {steps}"
            )
        # One row of cells per run; np.repeat makes two equal rows along y, which extend to infinity.
        per_run = max(2, int(np.ceil(run / edge)))  # one edge per cell
        _refuse_too_many("stairs", steps * per_run + 1, 2, "a longer edge")
        cells = np.arange(steps * per_run + 1)
        heights = rise * np.minimum((cells + per_run - 1) // per_run, steps)
        return cls._grid("stairs", np.repeat(heights[:, None], 2, axis=1), (start, -1.0), (run / per_run, 2.0))

    @classmethod
    def waves(cls, amplitude: float, length: float, size: float = 10.0, spacing: float = 0.05) -> Ground:
        """Create amplitude * sin(2 pi x / length) * sin(2 pi y / length) on a square about 0."""
        _finite("waves", amplitude=amplitude, length=length)
        if not length > 2 * spacing:
            raise ConfigError(f"ground 'waves': length must be more than two spacings of {spacing:g} m, got {length:g}")
        k = 2 * np.pi / length
        half = size / 2
        return cls.from_function(
            lambda x, y: amplitude * np.sin(k * x) * np.sin(k * y), (-half, half), (-half, half), spacing, "waves"
        )

    @classmethod
    def from_function(
        cls,
        height: Callable[[np.ndarray, np.ndarray], np.ndarray],
        x: tuple[float, float],
        y: tuple[float, float],
        spacing: float = 0.05,
        name: str = "function",
    ) -> Ground:
        """Sample a function of two arrays x, y (as from np.meshgrid) over a rectangle."""
        _finite(name, x0=x[0], x1=x[1], y0=y[0], y1=y[1], spacing=spacing)
        if not (spacing > 0 and x[1] > x[0] and y[1] > y[0]):
            raise ConfigError(f"ground '{name}': needs x0 < x1, y0 < y1 and a positive spacing")
        nx, ny = (max(2, int(np.ceil((hi - lo) / spacing)) + 1) for lo, hi in (x, y))
        _refuse_too_many(name, nx, ny, "a larger spacing")
        xs, ys = np.linspace(*x, nx), np.linspace(*y, ny)
        grid = np.broadcast_to(height(*np.meshgrid(xs, ys, indexing="ij")), (nx, ny))
        return cls._grid(name, grid, (x[0], y[0]), (xs[1] - xs[0], ys[1] - ys[0]))

    @classmethod
    def from_grid(cls, heights: np.ndarray, spacing: Sequence[float], origin: Sequence[float] = (0.0, 0.0)) -> Ground:
        """Create a ground from heights (nx, ny) [m], first index along x, bilinear between them.

        Args:
            spacing: (dx, dy) [m].
            origin: x, y of `heights[0, 0]` [m].

        Raises:
            ConfigError: if size, heights or spacing are invalid.
        """
        return cls._grid("grid", np.asarray(heights, dtype=float), tuple(origin), tuple(spacing))

    @classmethod
    def _grid(cls, name: str, heights: np.ndarray, origin: Sequence[float], spacing: Sequence[float]) -> Ground:
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ConfigError(f"ground '{name}': heights must be a table of at least 2 x 2, got shape {heights.shape}")
        _refuse_too_many(name, heights.shape[0], heights.shape[1], "a coarser grid")
        if not np.isfinite(heights).all():
            i, j = np.argwhere(~np.isfinite(heights))[0]
            raise ConfigError(f"ground '{name}': height [{i}, {j}] is {heights[i, j]:g}: give a number everywhere")
        if np.abs(heights).max() > FARTHEST:
            raise ConfigError(f"ground '{name}': heights must be within {FARTHEST:g} m, got {np.abs(heights).max():g}")
        if len(spacing) != 2 or len(origin) != 2 or not min(spacing) > 0 or not np.isfinite([*spacing, *origin]).all():
            raise ConfigError(f"ground '{name}': spacing must be two positive numbers and origin two, got {spacing}")
        if min(spacing) < CLOSEST or max(np.abs([*spacing, *origin])) > FARTHEST:
            raise ConfigError(
                f"ground '{name}': spacing must be {CLOSEST:g} to {FARTHEST:g} m and origin within that, got {spacing}"
            )
        # Layout of `ground_height`: seven header entries, then the heights.
        head = [GRID, *origin, *spacing, *heights.shape]
        return cls(name, np.concatenate([head, np.ravel(heights)]).astype(float))

    def height(self, x: float, y: float) -> float:
        """Height at (x, y) [m]."""
        return float(ground_height(self.array, float(x), float(y))[0])

    def heights(self, points: np.ndarray) -> np.ndarray:
        """Heights (k,) at points (k, 2) [m]."""
        x, y = points[:, 0], points[:, 1]
        g = self.array
        if g[0] == PLANE:
            return g[1] + g[2] * x + g[3] * y
        nx, ny = int(g[5]), int(g[6])
        a = np.clip((x - g[1]) / g[3], 0.0, nx - 1)
        b = np.clip((y - g[2]) / g[4], 0.0, ny - 1)
        i, j = np.minimum(a.astype(int), nx - 2), np.minimum(b.astype(int), ny - 2)
        u, w, k = a - i, b - j, 7 + i * ny + j
        near, far = (1 - w) * g[k] + w * g[k + 1], (1 - w) * g[k + ny] + w * g[k + ny + 1]
        return (1 - u) * near + u * far

    def as_plane(self) -> tuple[float, float, float] | None:
        """Return height at the origin [m], slopes along x and y; None for a grid."""
        if self.array[0] != PLANE:
            return None
        return float(self.array[1]), float(self.array[2]), float(self.array[3])

    def normal(self, x: float, y: float) -> np.ndarray:
        """Upward unit normal (3,) at (x, y)."""
        return np.array(ground_height(self.array, float(x), float(y))[1:])


def _finite(name: str, **values: float) -> None:
    for key, value in values.items():
        if not np.isfinite(value):
            raise ConfigError(f"ground '{name}': {key} must be a finite number, got {value:g}")


def _refuse_too_many(name: str, nx: int, ny: int, remedy: str) -> None:
    if nx * ny > MAX_HEIGHTS:
        raise ConfigError(f"ground '{name}': {nx} x {ny} heights are too many (at most {MAX_HEIGHTS:,}): use {remedy}")
