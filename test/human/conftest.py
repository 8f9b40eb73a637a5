"""Public recordings with results of OpenSim: files, models, and tables of coordinates."""

from pathlib import Path

import numpy as np
import pytest

from humanoid_control.human import read_osim


def read_table(path):
    """Columns of a .mot or .sto file by name; angles as they are."""
    lines = Path(path).read_text().splitlines()
    start = next(k for k, line in enumerate(lines) if line.strip().lower() == "endheader") + 1
    names = lines[start].split()
    values = np.array([[float(v) for v in line.split()] for line in lines[start + 1 :] if line.strip()])
    return dict(zip(names, values.T, strict=True))


def coordinates_of(person, table):
    """q (T, n) in rad and m of a table in degrees; a coordinate that is not there is at its default."""
    rows = len(table["time"])
    columns = [table.get(c.name, np.full(rows, np.rad2deg(c.default))) for c in person.coordinates]
    return np.stack([np.deg2rad(x) if c.rotational else x for x, c in zip(columns, person.coordinates, strict=True)], 1)


@pytest.fixture(scope="session")
def human_motion(model_file):
    """Return a function that gives the path of a file of the recordings, or skips where it is absent."""
    return lambda relative: model_file(f"human_motion/{relative}")


@pytest.fixture(scope="session")
def walker(human_motion):
    """The subject of the overground walk: 22 bodies, 37 coordinates, spline knees, patellae that follow them."""
    return read_osim(human_motion("rajagopal_walk/computed_opensim46/subject_scaled_walk.osim"))
