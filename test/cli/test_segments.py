"""`humanoid segments --check`, what the editor refuses to begin with, and the picture of collision volumes."""

import json
import socket

import pytest

from humanoid_control.collision.ssv.segments import Segment, SegmentFile, SegmentPair, Volume, write_segment_file


def one_line(result):
    assert result.returncode == 2, f"{result.stdout}\n{result.stderr}"
    lines = [line for line in result.stderr.strip().splitlines() if line.strip()]
    assert len(lines) == 1 and "Traceback" not in result.stderr, result.stderr
    return lines[0]


def thighs(radius):
    bone = Volume("bone", "line", radius, ((0.0, 0.0, -0.05), (0.0, 0.0, -0.41)))
    return SegmentFile((Segment("l_thigh", "l_thigh", (bone,), "y"),), (SegmentPair("l_thigh", "r_thigh"),), "lola")


def test_check_says_what_is_watched_and_fails_where_volumes_overlap_at_rest(humanoid):
    path = humanoid.folder / "thighs.yaml"
    write_segment_file(path, thighs(0.065))
    shown = humanoid("segments", "lola", "--check", "--file", path.name)
    assert shown.returncode == 0, shown.stderr
    assert "r_thigh (mirrored)" in shown.stdout and "1 monitored pairs of segments" in shown.stdout
    write_segment_file(path, thighs(0.1))
    result = humanoid("segments", "lola", "--check", "--json", "--file", path.name)
    found = json.loads(result.stdout)
    assert result.returncode == 1
    rest = next(p for p in found["postures"] if p["posture"] == "neutral")
    # The hips of Lola are 190 mm apart, and its thighs parallel.
    assert rest["smallest_gap_mm"] == pytest.approx(190 - 2 * 100, abs=1e-6)
    assert rest["between"] == "l_thigh.bone - r_thigh.bone"


def test_mistakes_are_one_line(humanoid):
    assert "did you mean lola" in one_line(humanoid("segments", "lolla", "--check"))
    assert "not found" in one_line(humanoid("segments", "lola", "--check", "--file", "none.yaml"))
    assert "folder" in one_line(humanoid("segments", "lola", "--file", "none/none.yaml"))
    assert "--check" in one_line(humanoid("segments", "lola", "--json"))
    path = humanoid.folder / "bad.yaml"
    path.write_text("schema: humanoid_ssv/1\nsegments:\n- {name: a, link: heda, volumes: []}\n")
    assert "has no volume" in one_line(humanoid("segments", "lola", "--file", path.name))
    write_segment_file(path, SegmentFile((Segment("a", "heda", thighs(0.1).segments[0].volumes),), ()))
    assert "did you mean head" in one_line(humanoid("segments", "lola", "--check", "--file", path.name))
    assert "between 1 and 65535, got 99999" in one_line(humanoid("segments", "lola", "--port", 99999))
    assert "'nowhere' is not an address" in one_line(humanoid("segments", "lola", "--host", "nowhere"))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        assert f"port {port} is in use" in one_line(humanoid("segments", "lola", "--port", port))
