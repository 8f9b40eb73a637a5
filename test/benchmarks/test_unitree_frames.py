"""Frames as bytes are much faster than objects, measured in the same run."""

import pytest

pytest.importorskip("cyclonedds", reason="needs cyclonedds, the DDS binding of Unitree's robots")

from evidence.benchmarks.drivers import unitree_frames


@pytest.mark.timed
def test_bytes_are_faster_than_objects():
    rows = {r["name"]: r for r in unitree_frames.measure()}
    assert {"unitree_write_29", "unitree_read_29", "objects_write_29", "objects_read_29"} <= set(rows)
    for what in ("write", "read"):
        ours, theirs = rows[f"unitree_{what}_29"], rows[f"objects_{what}_29"]
        assert ours["best"] <= ours["median"] <= ours["p99"]
        assert theirs["best"] > 10 * ours["best"], what
