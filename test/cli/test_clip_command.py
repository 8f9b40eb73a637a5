"""`humanoid clip` as a user runs it: what it shows, the draft, and that other commands take it."""

import json

import pytest

from test.cli.test_robot_commands import one_line
from test.mocap.formats.test_bvh_dialects import bvh
from test.mocap.test_marker_set_draft import BIG, BIPED


@pytest.fixture
def stranger(humanoid):
    """A skeleton that no marker set knows, of 310 units."""
    data = bvh(BIPED, BIG, shuffle=1).decode()
    head, motion = data.split("MOTION")
    grown = []
    for line in head.splitlines():
        words = line.split()
        grown.append(
            " ".join(["OFFSET", *(f"{1.8 * float(w):.4f}" for w in words[1:])]) if words[0] == "OFFSET" else line
        )
    path = humanoid.folder / "stranger.bvh"
    path.write_text("\n".join(grown) + "\nMOTION" + motion)
    return path.name


def test_what_is_in_a_clip(humanoid):
    shown = humanoid("clip", "dance")
    assert shown.returncode == 0, shown.stderr
    for text in ("17 markers", "50 Hz", "front", "left side", "dance16", "fits", "Hip_L"):
        assert text in shown.stdout
    data = json.loads(humanoid("clip", "dance", "--json").stdout)
    assert data["rate_hz"] == 50 and data["labels"]["Hip_L"] == 1.0
    assert data["marker_sets"][0]["name"] == "dance16" and data["marker_sets"][0]["fits"]


def test_draft_of_an_unknown_giant_dances(humanoid, stranger):
    assert "give unit and scale (unit cm and scale 0.5" in one_line(humanoid("clip", stranger))
    size = ("--unit", "cm", "--scale", "0.55")
    assert "`humanoid clip`" in one_line(humanoid("retarget", stranger, *size))
    drawn = humanoid("clip", stranger, *size, "--draft", "my.yaml", "-o", "giant.png")
    assert drawn.returncode == 0, drawn.stderr
    assert "written: my.yaml" in drawn.stdout and "as given" in drawn.stderr
    assert (humanoid.folder / "giant.png").read_bytes().startswith(b"\x89PNG")
    assert "exists already" in one_line(humanoid("clip", stranger, *size, "--draft", "my.yaml"))
    done = humanoid("retarget", stranger, "--marker-set", "my.yaml", *size, "--json", timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"][0]["frames"] == 8


def test_mistakes(humanoid):
    assert "did you mean" in one_line(humanoid("clip", "dnce"))
    assert "is in metres" in one_line(humanoid("clip", "dance", "--unit", "mm"))
    assert "frame must be between 0 and" in one_line(humanoid("clip", "dance", "--frame", "9999"))
    assert "must be a .png file" in one_line(humanoid("clip", "dance", "-o", "x.jpg"))
    assert "is a .yaml file" in one_line(humanoid("clip", "dance", "--draft", "x.txt"))
