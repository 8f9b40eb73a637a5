"""Ground recipes: one line of text.

    plane:slope=8,direction=90        rises by 8 degrees to the left
    stairs:rise=0.15,run=0.3,steps=5,start=0.6,top=1.0      five up, a landing of 1 m, five down
    waves:height=0.01,length=0.4      egg boxes
    rough:height=0.01,length=0.2,seed=3                     random heights, linear between them
    tiles:height=0.015,length=0.3,seed=3                    level tiles, some raised
    file:path=heights.csv,spacing=0.05,x=-1,y=-1            table of heights, first index along x

Angles in degrees, lengths in metres; level at the start.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from humanoid_control.documents import load_arrays, read_text
from humanoid_control.errors import ConfigError, UnknownNameError, told_of
from humanoid_control.simulation.contact.ground import Ground

Values = dict[str, float]
LEVEL = 0.3  # [m] about the start; from there to twice as far the ground gets as rough as it is
SIZE = 16.0  # [m] of the square of grounds that are rough everywhere
EDGE = 0.01  # [m] over which an edge rises


def ground_of(text: str) -> Ground:
    """Return the ground of a recipe `kind:name=value,...`; empty: a level plane.

    Raises:
        UnknownNameError: if the kind or a name is unknown.
        ConfigError: if a value is invalid.
    """
    kind, _, rest = (text.strip() or "plane").partition(":")
    kind = kind.strip()
    if kind not in RECIPES:
        raise UnknownNameError("kind of ground", kind, RECIPES)
    defaults, make = RECIPES[kind]
    values, path = dict(defaults), ""
    for part in (p.strip() for p in rest.split(",") if p.strip()):
        name, equals, value = (t.strip() for t in part.partition("="))
        if not equals:
            raise ConfigError(f"ground '{kind}': expected name=value, got '{part}'")
        if name == "path" and kind == "file":
            path = value
            continue
        if name not in defaults:
            raise UnknownNameError(f"number of ground '{kind}'", name, defaults)
        try:
            values[name] = float(value)
        except ValueError:
            raise ConfigError(f"ground '{kind}': {name} must be a number, got '{value}'") from None
        if not np.isfinite(values[name]):
            raise ConfigError(f"ground '{kind}': {name} must be a finite number, got {value}")
    return _from_file(path, values) if kind == "file" else make(values)


def _plane(v: Values) -> Ground:
    return Ground.plane(v["height"], np.radians(v["slope"]), np.radians(v["direction"]))


def _stairs(v: Values) -> Ground:
    steps = _count("stairs", "steps", v["steps"])
    if v["top"] < 0:
        raise ConfigError(f"ground 'stairs': top must be 0 or more, got {v['top']:g}")
    up = Ground.stairs(v["rise"], v["run"], steps, v["start"], v["edge"])
    if v["top"] == 0:
        return up
    # The same way down after a landing: both flights on one grid of cells as long as an edge.
    cell = v["edge"]
    if v["top"] < 2 * cell:
        raise ConfigError(f"ground 'stairs': top must be 0 or at least two edges of {cell:g} m, got {v['top']:g}")
    x = np.arange(int(np.ceil((2 * (steps - 1) * v["run"] + v["top"]) / cell)) + 3) * cell
    above = np.floor((x - 0.5 * cell) / v["run"]) + 1
    below = np.floor((x - 0.5 * cell - (steps - 1) * v["run"] - v["top"]) / v["run"]) + 1
    heights = v["rise"] * (np.clip(above, 0, steps) - np.clip(below, 0, steps))
    return Ground.from_grid(np.repeat(heights[:, None], 2, axis=1), (cell, 2.0), (v["start"], -1.0))


def _waves(v: Values) -> Ground:
    length, height = v["length"], v["height"]
    if not length >= 0.05:
        raise ConfigError(f"ground 'waves': length must be at least 0.05 m, got {length:g}")
    k = 2 * np.pi / length
    spacing = max(length / 16, 0.01)
    return _square("waves", spacing, lambda x, y: height * np.sin(k * x) * np.sin(k * y) * _roughness(x, y))


def _rough(v: Values) -> Ground:
    _length("rough", v["length"])
    rng = np.random.default_rng(_count("rough", "seed", v["seed"], 0))

    def heights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return v["height"] * rng.uniform(-1, 1, x.shape) * _roughness(x, y)

    return _square("rough", v["length"], heights)


def _tiles(v: Values) -> Ground:
    length = v["length"]
    _length("tiles", length)
    rng = np.random.default_rng(_count("tiles", "seed", v["seed"], 0))
    n = int(np.ceil(SIZE / length)) + 2
    raised = rng.random((n, n)) < 0.5
    cells = max(2, round(length / (1.5 * EDGE)))

    def heights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        i, j = (np.floor((a + SIZE / 2) / length + 1e-9).astype(int) for a in (x, y))
        away = np.hypot((i + 0.5) * length - SIZE / 2, (j + 0.5) * length - SIZE / 2) > LEVEL + length
        return v["height"] * (raised[i, j] & away)

    return _square("tiles", length / cells, heights)


def _roughness(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.clip(np.hypot(x, y) / LEVEL - 1.0, 0.0, 1.0)


def _square(name: str, spacing: float, height: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Ground:
    half = SIZE / 2
    return Ground.from_function(height, (-half, half), (-half, half), spacing, name)


def _length(kind: str, length: float) -> None:
    if not 0.02 <= length <= SIZE:
        raise ConfigError(f"ground '{kind}': length must be 0.02 to {SIZE:g} m, got {length:g}")


def _count(kind: str, name: str, value: float, least: int = 1) -> int:
    if value != int(value) or value < least:
        raise ConfigError(f"ground '{kind}': {name} must be a whole number from {least} on, got {value:g}")
    return int(value)


def _from_file(path: str, v: Values) -> Ground:
    """Read heights from .npz (`heights`, `spacing`, `origin`) or from a text table."""
    if not path:
        raise ConfigError("ground 'file': needs path=FILE")
    where = Path(os.path.expanduser(path))
    if not os.path.isfile(where):  # also False for an invalid path
        raise ConfigError(f"ground 'file': no file '{path}'")
    try:
        if where.suffix == ".npz":
            arrays = load_arrays(where, ("heights", "spacing", "origin"))
            x, y = np.broadcast_to(arrays["spacing"], 2).tolist()
            return Ground.from_grid(arrays["heights"], (x, y), tuple(np.broadcast_to(arrays["origin"], 2).tolist()))
        lines = read_text(where).splitlines()
        heights = np.loadtxt(lines, delimiter="," if "," in lines[0] else None, ndmin=2)
    except ConfigError as e:
        raise ConfigError(f"ground 'file': '{path}': {e}") from None
    except KeyError as e:
        raise ConfigError(f"ground 'file': '{path}' needs heights, spacing and origin: {e}") from None
    except (OSError, ValueError, IndexError, UnicodeDecodeError) as e:
        raise ConfigError(f"ground 'file': '{path}' is not a table of heights: {' '.join(str(e).split())}") from None
    with told_of(f"ground 'file': '{path}'"):
        return Ground.from_grid(heights, (v["spacing"], v["spacing"]), (v["x"], v["y"]))


RECIPES: dict[str, tuple[Values, Callable[[Values], Ground]]] = {
    "plane": ({"slope": 0.0, "direction": 0.0, "height": 0.0}, _plane),
    "stairs": ({"rise": 0.1, "run": 0.3, "steps": 5, "start": 0.5, "top": 0.0, "edge": EDGE}, _stairs),
    "waves": ({"height": 0.01, "length": 0.4}, _waves),
    "rough": ({"height": 0.01, "length": 0.2, "seed": 0}, _rough),
    "tiles": ({"height": 0.015, "length": 0.3, "seed": 0}, _tiles),
    "file": ({"spacing": 0.05, "x": 0.0, "y": 0.0}, lambda v: Ground.plane()),
}
"""Kind of ground -> its numbers with defaults, and its constructor."""
