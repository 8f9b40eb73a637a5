"""Our person beside Vicon's own outputs in a C3D file."""

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.evaluation.plug_in_gait import ASKED, compare_with_plug_in_gait


@pytest.fixture(scope="module")
def comparison(model_file):
    return compare_with_plug_in_gait(model_file("mocap/vicon_c3d/PiG_Motion-FlatFoot-One.c3d"))


def test_angles_and_moments_are_as_near_as_is_asked(comparison):
    rows = {(r["quantity"], r["side"]): r for r in comparison.rows}
    for side in ("right", "left"):
        for quantity in ("knee flexion", "knee moment", "ankle moment"):
            row = rows[quantity, side]
            assert row["rms"] <= ASKED[quantity], (quantity, side)
            assert row["frames"] > 60
        assert rows["hip flexion", side]["rms"] < 3 and rows["ankle dorsiflexion", side]["rms"] < 3
        # Not only near, but of the same shape and sign.
        theirs, ours = comparison.curves["ankle moment", side]
        both = np.isfinite(theirs) & np.isfinite(ours)
        assert np.corrcoef(theirs[both], ours[both])[0, 1] > 0.95


def test_centres_of_mass_go_together_and_the_plate_is_with_ours(comparison):
    """A constant is between both: Vicon's lies farther ahead. The right foot's plate tells whose is right."""
    row = next(r for r in comparison.rows if r["quantity"] == "centre of mass, without constant offset")
    assert row["rms"] < 10.0
    levers = {r["side"]: r["rms"] for r in comparison.rows if r["quantity"] == "centre of mass, by the plate"}
    assert abs(levers["ours"]) < 15.0 < 35.0 < abs(levers["Plug-in Gait's"])


def test_files_without_these_outputs_are_refused(model_file):
    with pytest.raises(ClipError, match="no PROCESSING"):
        compare_with_plug_in_gait(model_file("mocap/vicon_c3d/shd01.c3d"))
    with pytest.raises(ClipError, match="cannot be read"):
        compare_with_plug_in_gait("nowhere.c3d")
