"""Benches of distances: bounding volumes, a robot's shapes, swept-sphere volumes."""

import json

import pytest

from evidence.benchmarks import self_distance, ssv_distance
from evidence.benchmarks.page import SECTIONS
from humanoid_control.cli.main import main


@pytest.mark.nightly
def test_bounding_volumes_stand_beside_the_published_table(capsys):
    assert main(["bench", "bounding_volumes", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = {r["volume"]: r for r in said["rows"]}
    assert list(rows) == ["convex hull", "swept sphere", "elliptical capsule", "circular capsule"]
    assert all(round(r["faces"], 1) == r["published_faces"] for r in rows.values())
    assert rows["convex hull"]["difference_percent"] == rows["convex hull"]["published_difference_percent"] == 3.5
    assert [r["depends_on_sizes"] for r in rows.values()] == ["no", "difference", "difference", "difference"]
    assert all(len(r["shapes"]) == 9 for r in rows.values())
    assert any("does not print the sizes" in line for line in said["notes"])
    assert sum("of 50 random sets" in line for line in said["notes"]) == 3


def test_self_distance_gives_a_row_for_each_side_and_threshold(capsys, monkeypatch):
    monkeypatch.setattr(self_distance, "POSTURES", 20)
    assert main(["bench", "self_distance", "--robot", "armar3"]) == 0
    out = capsys.readouterr().out
    for name in (
        "ours_50mm",
        "coal_50mm",
        "ours_200mm",
        "coal_200mm",
        "73 pairs",
        "Time of coal relative to this package",
    ):
        assert name in out


@pytest.mark.nightly
def test_distance_has_a_row_for_each_function_and_for_the_whole_robot(capsys, monkeypatch):
    for name, value in (("REPEATS", 3), ("POSTURES", 20), ("PAIRS", 100), ("CAPSULES", 10)):
        monkeypatch.setattr(ssv_distance, name, value)
    assert main(["bench", "distance", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = {r["name"]: r for r in said["rows"]}
    assert list(rows)[:6] == ["pp", "pl", "pt", "ll", "lt", "tt"]
    assert rows["tt"]["published_ns"] == 888.7 and rows["tt"]["unit"] == "ns" and rows["tt"]["n"] == 300
    assert {"lt_two_step", "obb_test", "aabb_test", "capsule_pair", "coal_capsule_pair"} < set(rows)
    assert rows["capsule_pair"]["differ_m"] < 1e-9, "both measured the same capsules"
    for name in ("capsule_box_pair", "capsule_box_deep", "box_pair", "box_deep", "ellipsoid_box_pair"):
        assert rows[name]["differ_m"] < 1e-4 and rows[f"coal_{name}"]["median"] > 0, name
    whole, near = rows["lola_all_pairs"], rows["lola_within_100mm_obb"]
    assert whole["unit"] == "us" and whole["segments"] == 18 and whole["near_pairs"] == whole["segment_pairs"] == 132
    assert near["near_pairs"] < 40 and all(r["median"] > 0 for r in said["rows"])
    assert any("table 6.9" in line and "888.7" in line for line in said["notes"])
    assert "`coal_ellipsoid_box_pair`" in SECTIONS["distance"](rows) and "`capsule_pair`" in SECTIONS["distance"](rows)
    assert main(["bench", "distance", "--robot", "hrp2"]) == 0
    assert "hrp2_all_pairs" in capsys.readouterr().out
