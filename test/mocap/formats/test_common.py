"""Units: those that a file states are checked against the size of a person, the others found from it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from humanoid_control.errors import ClipError, ConfigError, UnknownNameError
from humanoid_control.mocap import load_clip, synthetic_dance
from humanoid_control.mocap.formats.common import (
    CMU_UNIT,
    UNITS,
    Size,
    body_extent,
    scale_of_markers,
    scale_of_skeleton,
)


@pytest.fixture(scope="module")
def person():
    return synthetic_dance(duration=12, rate=5).positions


@pytest.mark.parametrize("unit", UNITS)
def test_true_unit_is_believed_without_a_word(person, unit):
    scale, warnings = scale_of_markers(person / UNITS[unit], unit, "clip")
    assert scale == UNITS[unit]
    assert warnings == ()


@pytest.mark.parametrize("spelling", ["MM", " mm ", "Millimeters"])
def test_spelling_of_a_unit_does_not_matter(person, spelling):
    assert scale_of_markers(person * 1000, spelling, "clip") == (0.001, ())


LIES = [
    (true, stated)
    for true in UNITS
    for stated in ("", "parsec", *UNITS)
    # A person in inches read as centimetres is 0.6 m: as long as legs alone, so that is believed.
    if stated != true and (true, stated) != ("inch", "cm")
]


@pytest.mark.parametrize(("true", "stated"), LIES)
def test_lying_or_missing_unit_is_corrected_and_reported(person, true, stated):
    scale, warnings = scale_of_markers(person / UNITS[true], stated, "clip")
    assert scale == UNITS[true]
    assert len(warnings) == 1
    assert f"read as {true}" in warnings[0]


def test_nobody_is_seven_kilometres_tall(person):
    with pytest.raises(ClipError, match="implausible for a person"):
        scale_of_markers(person * 4e6, "mm", "clip")


def test_nothing_to_see():
    with pytest.raises(ClipError, match="no frame contains two markers"):
        scale_of_markers(np.full((5, 3, 3), np.nan), "mm", "clip")


def test_extent_is_the_longest_side_and_ignores_missing_markers():
    positions = np.zeros((3, 4, 3))
    positions[:, 1] = (0.5, 1.7, 0.2)
    positions[:, 2] = (0.1, 0.3, 0.4)
    positions[:, 3] = np.nan
    assert body_extent(positions) == pytest.approx(1.7)


@pytest.mark.parametrize("scale", [*UNITS.values(), CMU_UNIT])
@pytest.mark.parametrize("chain", [1.0, 1.4, 2.0])
def test_skeleton_of_a_child_and_a_giant_in_every_unit(scale, chain):
    found, notes = scale_of_skeleton(chain / scale, "clip")
    assert found == pytest.approx(scale)
    assert len(notes) == 1


def test_unit_a_skeleton_states_is_believed_where_a_person_fits():
    assert scale_of_skeleton(24.7, "clip", CMU_UNIT) == (CMU_UNIT, ())
    scale, notes = scale_of_skeleton(142.0, "clip", 0.0254)  # 3.6 m from ankle to head
    assert scale == UNITS["cm"]
    assert "0.0254 m, implausible for a person" in notes[0]


def test_units_of_the_cmu_database_taken_for_metres_and_written_in_centimetres():
    scale, notes = scale_of_skeleton(2560.0, "clip", 0.01)
    assert scale == pytest.approx(CMU_UNIT / 100)
    assert "read as hundredth of a CMU unit" in notes[0]
    assert scale_of_skeleton(2050.0, "clip")[0] == UNITS["mm"]  # a giant, where no unit is stated


@pytest.mark.parametrize("chain", [260.0, 14.0, 0.6])
def test_unit_and_scale_that_the_message_offers_make_it_a_person(chain):
    with pytest.raises(ClipError, match="implausible for a person") as caught:
        scale_of_skeleton(chain, "clip")
    unit, scale = re.search(r"unit (\w+) and scale ([\d.]+) ", str(caught.value)).groups()
    factor, notes = scale_of_skeleton(chain, "clip", size=Size(unit, float(scale)))
    assert chain * factor == pytest.approx(1.42, rel=0.05)
    assert f"read as {unit} times {scale}, as given" in notes[0]
    assert scale_of_skeleton(chain, "clip", size=Size(scale=float(scale)))[0] == pytest.approx(factor)


def test_unit_that_is_told_counts_more_than_the_stated_one(person):
    assert scale_of_markers(person, "mm", "clip", Size("cm", 80))[0] == pytest.approx(0.8)
    assert scale_of_markers(person * 1000, "mm", "clip", Size("millimeters"))[0] == 0.001
    assert scale_of_markers(person * 500, "mm", "clip", Size(scale=2.0)) == (0.002, ())
    with pytest.raises(ClipError, match="correct the unit or the scale"):
        scale_of_markers(person, "m", "clip", Size("mm"))


def test_size_of_no_sense():
    with pytest.raises(UnknownNameError, match="did you mean inch"):
        Size("inchs")
    with pytest.raises(ConfigError, match="must be positive"):
        Size(scale=0.0)


@pytest.mark.parametrize("chain", [0.0, 1e-3, 1e5, float("nan")])
def test_skeleton_of_no_person(chain):
    with pytest.raises(ClipError, match="implausible for a person"):
        scale_of_skeleton(chain, "clip")


def test_metres_field_over_millimetres_is_seen_through(mocap):
    clip = load_clip(mocap("odd_files/gaitDataPlanar.c3d"))
    assert "states unit 'M'" in clip.warnings[0]
    assert "read as mm" in clip.warnings[0]
    head = clip.marker("LFHD")
    assert head[0] == pytest.approx([0.241, 0.0, 1.572], abs=0.001)
