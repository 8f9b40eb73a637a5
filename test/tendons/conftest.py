"""Mappings of the small arm that several tests use."""

import pytest

from humanoid_control.tendons.mappings.neural import fit_neural
from humanoid_control.tendons.mappings.postures import grid_axes, grid_postures, random_postures
from humanoid_control.tendons.mappings.table import build_table
from test.reference.straight_tendons import ARM_LENGTHS, LIMITS

NAMED = ARM_LENGTHS._replace(model_hash="abc")


@pytest.fixture(scope="package")
def network():
    return fit_neural(NAMED, random_postures(LIMITS, 1500), 24, 500)


@pytest.fixture(scope="package")
def table():
    return build_table(NAMED, grid_postures(grid_axes(LIMITS, (12, 11, 12, 11))))
