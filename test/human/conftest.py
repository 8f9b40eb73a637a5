"""Public recordings with results of OpenSim: files, models, and tables of coordinates."""

from pathlib import Path

import numpy as np
import pytest

from humanoid_control.human import (
    AnatomicalJoint,
    Coordinate,
    CoordinateAxis,
    Coupling,
    Function,
    Marker,
    OffsetFrame,
    Person,
    PersonBody,
    read_osim,
)


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


class Tables:
    """Tables of OpenSim's files, for tests."""

    read = staticmethod(read_table)
    q = staticmethod(coordinates_of)


@pytest.fixture(scope="session")
def tables():
    """Functions that read tables."""
    return Tables


@pytest.fixture(scope="session")
def human_motion(model_file):
    """Return a function that gives the path of a file of the recordings, or skips where it is absent."""
    return lambda relative: model_file(f"human_motion/{relative}")


@pytest.fixture(scope="session")
def walker(human_motion):
    """The subject of the overground walk: 22 bodies, 37 coordinates, spline knees, patellae that follow them."""
    return read_osim(human_motion("rajagopal_walk/computed_opensim46/subject_scaled_walk.osim"))


LINE = Function((0.0, 1.0))


def ball(name):
    return PersonBody(name, 2.0, np.array([0.01, -0.1, 0.02]), np.diag([0.02, 0.01, 0.03]))


def small_model(**changes):
    """Two bodies: a free one, and one that a coordinate with splines, a polynomial and a skew axis moves."""
    skew, t = np.array([0.3, -0.5, 0.8]), 0.2
    P = OffsetFrame(
        np.array([[np.cos(t), -np.sin(t), 0], [np.sin(t), np.cos(t), 0], [0, 0, 1.0]]), np.array([0, -0.3, 0.1])
    )
    spline = Function((), (-0.5, 0.0, 0.4, 1.0), (0.0, 0.02, -0.01, 0.03))
    root = AnatomicalJoint(
        "root", "ground", "trunk", OffsetFrame(), OffsetFrame(),
        tuple(CoordinateAxis(a, LINE, c) for a, c in zip(np.eye(3)[[2, 0, 1]], "abc", strict=True)),
        tuple(CoordinateAxis(a, LINE, c) for a, c in zip(np.eye(3), "xyz", strict=True)),
    )  # fmt: skip
    knee = AnatomicalJoint(
        "knee", "trunk", "shank", P, OffsetFrame(P.R, np.array([0.0, 0.05, 0.0])),
        (CoordinateAxis(-np.eye(3)[0], LINE, "k"), CoordinateAxis(skew, Function((0.1, 0.2, -0.3)), "k"),
         CoordinateAxis(np.eye(3)[2], LINE, "l")),
        (CoordinateAxis(skew, spline, "k"), CoordinateAxis(np.eye(3)[1], Function((0.04,)))),
    )  # fmt: skip
    plain = {"name": "small", "bodies": (ball("trunk"), ball("shank")), "joints": (root, knee)}
    coordinates = tuple(Coordinate(c, c not in "xyz") for c in "abcxyzkl")
    plain |= {"all_coordinates": coordinates, "couplings": (Coupling("l", "k", Function((0.1, -0.7, 0.2))),)}
    plain["markers"] = (Marker("m", "shank", np.array([0.1, -0.2, 0.03])),)
    return Person(**plain | changes)


@pytest.fixture(scope="session")
def small_person():
    """Return the function that gives a person of two bodies, with changes."""
    return small_model
