"""Table I of Kawaharazuka 2018: the grids of its three groups, and the same data and degree fitted here, timed."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.tendons.mappings.exact import fit_target
from humanoid_control.tendons.mappings.mapping import Array, Progress
from humanoid_control.tendons.mappings.polynomial import PolynomialMapping, fit_polynomial_on_grid

DEGREE = 5


@dataclass(frozen=True)
class PublishedGroup:
    """A column of table I.

    Attributes:
        name: of the column. group: of the robot. joints: in the order of counts, own ones first.
        counts: values per joint, whose product is the published number of data.
        construction, regression: published times on 12 cores [s].
        own: how many of the joints it estimates; it borrows the rest.
    """

    name: str
    group: str
    joints: tuple[str, ...]
    counts: tuple[int, ...]
    construction: float
    regression: float
    own: int = 4


_SCAPULA = ("l_sc_roll", "l_sc_pitch", "l_ac_roll", "l_ac_yaw")
_SHOULDER = ("l_gh_roll", "l_gh_pitch", "l_gh_yaw", "l_elbow_pitch")
# The product of the counts has only one decomposition into eight numbers from 5 to 9; which joint has which is chosen
# here. The neck borrows both acromioclavicular joints. With three groups nobody lends the right one: it owns that one.
TABLE_ONE = (
    PublishedGroup(
        "neck",
        "neck",
        ("neck_top_pitch", "neck_roll", "neck_pitch", "neck_yaw", "r_ac_roll", "r_ac_yaw", "l_ac_roll", "l_ac_yaw"),
        (5, 7, 7, 7, 5, 5, 5, 5),
        8579.0,
        5514.0,
        6,
    ),
    PublishedGroup(
        "scapula",
        "l_scapula",
        (*_SCAPULA, "neck_roll", "neck_pitch", "l_gh_roll", "l_gh_pitch"),
        (5, 5, 5, 5, 7, 7, 8, 9),
        16957.0,
        12885.0,
    ),
    PublishedGroup(
        "shoulder",
        "l_shoulder",
        (*_SHOULDER, "l_ac_roll", "l_ac_yaw", "l_sc_roll", "l_sc_pitch"),
        (8, 9, 7, 7, 5, 5, 5, 6),
        16840.0,
        25287.0,
    ),
)


@dataclass(frozen=True)
class Built:
    """Mapping of table I as built here.

    Attributes:
        seconds: for all; lengths: for the lengths alone [s].
        peak: most memory of this process so far [bytes].
        length_rms: length error in random postures, after its mean is taken off [m].
        arm_error: root mean square error of the moment arms, as a share of the largest arm.
    """

    mapping: PolynomialMapping
    seconds: float
    lengths: float
    peak: int
    length_rms: float
    arm_error: float


def build(
    robot: Robot,
    group: PublishedGroup,
    counts: Sequence[int] | None = None,
    progress: Progress | None = None,
    postures: int = 500,
) -> Built:
    """Make the data set and the polynomials of a group, on one core.

    Args:
        counts: values per joint, if not those of table I.
        progress: as for `fit_polynomial_on_grid`.
        postures: random ones in which it is compared with the geometry.
    """
    geometry = tendon_geometry(robot, group.group, group.joints)
    target = fit_target(geometry)
    target.geometry(np.zeros((1, len(group.joints))))  # loads the kernel
    spent = 0.0

    def timed(postures: Array) -> tuple[Array, Array]:
        nonlocal spent
        begin = perf_counter()
        out = target.geometry(postures)
        spent += perf_counter() - begin
        return out

    begin = perf_counter()
    mapping = fit_polynomial_on_grid(target._replace(geometry=timed), counts or group.counts, DEGREE, progress)
    seconds = perf_counter() - begin
    q = np.random.default_rng(0).uniform(geometry.limits[:, 0], geometry.limits[:, 1], (postures, len(group.joints)))
    truth, arms = geometry.raw(q)
    found, slopes = mapping.evaluate(q)
    error = found + geometry.zero - truth
    rms = float(np.sqrt(np.mean((error - error.mean(axis=0)) ** 2)))
    slope = float(np.sqrt(np.mean((slopes - arms) ** 2)) / np.abs(arms).max())
    return Built(mapping, seconds, spent, peak_memory(), rms, slope)


def peak_memory() -> int:
    """The most memory that this process has had [bytes]."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
