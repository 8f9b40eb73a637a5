"""`humanoid bench start`: a stack started by its command and node by node, and each node killed once."""

import json
import subprocess
import sys

import pytest

from evidence.benchmarks.page import markdown_page
from test.places import port

pytest.importorskip("rclpy", reason="needs ROS 2")
pytestmark = [pytest.mark.ros, pytest.mark.stack, pytest.mark.slow]
NODES = ("simulator", "state_estimator", "whole_body_ik", "trajectory_streamer", "viewer")
SHORT = """
import json
from evidence.benchmarks.nodes import start
start.KILLS, start.SETTLE, start.PORT = 1, 0.5, {port}
rows = start.measure(rounds=1{more})
print(json.dumps({{"rows": rows, "notes": start.notes(rows)}}))
"""


def measured(humanoid, more=""):
    script = SHORT.format(port=port(7), more=more)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=humanoid.env,
        cwd=humanoid.folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    return {r["name"]: r for r in told["rows"]}, told["notes"]


@pytest.mark.nightly
def test_every_node_is_started_and_killed(humanoid):
    pytest.importorskip("viser", reason="needs the viewer")
    rows, notes = measured(humanoid)
    times = ("start_s", "stop_s", "alone_s", *(f"ready_{n}_s" for n in NODES), *(f"killed_{n}_s" for n in NODES))
    assert set(rows) == set(times) and all(r["unit"] == "s" and r["n"] == 1 for r in rows.values())
    seconds = {name: r["median"] for name, r in rows.items()}
    assert min(seconds.values()) > 0.05 and max(seconds.values()) < 30
    assert seconds["start_s"] > seconds["ready_whole_body_ik_s"] + 0.3, "the command's own start is part of it"
    assert seconds["alone_s"] > 0.5, "five interpreters load their libraries"
    assert seconds["killed_whole_body_ik_s"] > 0.1, "nothing of the dead node counts"
    told = {"bench": "start", "date": "2026-01-02", "rows": list(rows.values()), "notes": notes}
    machine = {"cpu": "c", "cores": 2, "system": "s", "python": "3", "versions": {}}
    page = markdown_page([{**told, "machine": machine}])
    assert (
        "`humanoid bench start --cold`" in page and "| viewer: from its kill to its page (`killed_viewer_s`) |" in page
    )


def test_a_mistake_is_one_line(humanoid):
    done = humanoid("bench", "start", "--rounds", "0")
    assert done.returncode == 2 and "rounds must be between 1 and 100" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not (humanoid.home / "runs").exists()


@pytest.mark.thorough
def test_kernels_are_compiled_anew(humanoid):
    rows, notes = measured(humanoid, ", cold=True")
    assert rows["compile_dance_s"]["median"] > 5 and rows["compile_all_cpu_s"]["median"] > 20
    assert rows["nothing_moving_s"]["median"] > rows["nothing_installed_s"]["median"] > 5
    assert any("new clone" in line for line in notes)
