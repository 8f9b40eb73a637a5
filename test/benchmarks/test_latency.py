"""The latency bench without its processes: percentiles, parts, segments that are kept, and the profile of Fast DDS."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from evidence.benchmarks.nodes import latency
from evidence.benchmarks.nodes.histogram import PER_DECADE, LogHistogram, draw
from evidence.benchmarks.nodes.latency import LISTENER_COLUMNS, NODE_COLUMNS, PARTS, TICKS, TOTAL
from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.paths import share_dir

BIN = 10 ** (1 / PER_DECADE)


def times(n, seed=0):
    return 10 ** np.random.default_rng(seed).normal(2.5, 0.3, n)


@pytest.mark.parametrize("percent", [50, 99, 99.9, 99.99])
def test_a_percentile_is_that_of_numpy_and_never_better(percent):
    values = times(200_000)
    h = LogHistogram()
    h.add_all(values)
    true = np.percentile(values, percent, method="inverted_cdf")
    assert true <= h.percentile(percent) <= true * BIN


def test_one_by_one_and_in_parts_they_are_the_same():
    values, whole, parts, single = times(3000), LogHistogram(), LogHistogram(), LogHistogram()
    whole.add_all(values)
    for chunk in np.split(values, 3):
        other = LogHistogram()
        other.add_all(chunk)
        parts.merge(LogHistogram.from_json(json.loads(json.dumps(other.to_json()))))
    for v in values.tolist():
        single.add(v)
    assert (whole.counts == parts.counts).all() and (whole.counts == single.counts).all()
    assert whole.largest == parts.largest == single.largest == values.max() and whole.n == 3000


def test_a_percentile_with_fewer_than_ten_times_beyond_is_not_said():
    h = LogHistogram()
    h.add_all(times(999))
    row = h.row("x")
    assert row["p99"] == "" and row["median"] != "" and row["max"] == round(h.largest, 1)
    h.add(5.0)
    assert h.row("x")["p99"] != "" and h.row("x")["p99.9"] == ""
    assert LogHistogram().row("x")["median"] == ""


def test_times_outside_are_counted():
    h = LogHistogram()
    h.add_all(np.array([-3.0, 0.01, 1e9, 2e9]))
    assert h.counts[0] == 2 and h.counts[-1] == 2 and h.n == 4


def test_the_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    h = LogHistogram()
    h.add_all(times(1000))
    assert draw({"x": h, "none": LogHistogram()}, tmp_path / "h.png")
    assert (tmp_path / "h.png").read_bytes()[:4] == b"\x89PNG"


def tables():
    """Two targets; the command of the second is heard only, the third has none."""
    node = np.zeros((3, len(NODE_COLUMNS)), dtype=np.int64)
    node[:, 0] = 1_000_000_000 * np.arange(1, 4)
    for k, step in enumerate([10, 30, 60, 100, 150, 210, 280]):
        node[:, 1 + k] = node[:, 0] + 1000 * step
    node[:, NODE_COLUMNS.index("command")] = [11, 22, 33]
    listener = np.zeros((2, len(LISTENER_COLUMNS)), dtype=np.int64)
    listener[:, 0] = [22, 11]
    for k, step in enumerate([220, 260, 310]):
        listener[:, 1 + k] = node[[1, 0], 0] + 1000 * step
    return node, listener


def test_the_parts_follow_each_other_and_add_up_to_the_way():
    parts = latency.joined(*tables())
    assert parts.keys() == PARTS.keys()
    first = {name: values[0] for name, values in parts.items()}
    assert list(first.values()) == [10, 20, 30, 40, 50, 60, 10, 40, 50, 70, 310]
    assert sum(list(first.values())[:-2]) == first[TOTAL] and all(len(v) == 2 for v in parts.values())


def test_times_that_the_middleware_does_not_say_are_left_out():
    node, listener = tables()
    node[:, NODE_COLUMNS.index("received")] = 0
    parts = latency.joined(node, listener)
    assert len(parts["transport of the markers"]) == 0 and len(parts[TOTAL]) == 2
    assert all(len(v) == 0 for v in latency.joined(node[:0], listener).values())


def segment(cycles, us=100.0):
    h = LogHistogram()
    h.add_all(np.full(cycles, us))
    return {
        "cycles": cycles,
        "missed": 1,
        "targets": cycles // 10,
        "unanswered": 2,
        "scheduling": "fifo 50",
        "histograms": {name: h.to_json() for name in (*PARTS, *TICKS)},
    }


@pytest.fixture
def runs(monkeypatch):
    asked = []

    def run(robot, cycles, load, transport):
        asked.append(cycles)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return segment(cycles)

    monkeypatch.setattr(latency, "run_segment", run)
    return asked


def test_an_interrupted_measurement_goes_on_behind_its_segments(tmp_path, runs):
    keep = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        latency.measure(cycles=350_000, keep=str(keep))
    assert runs == [100_000] * 3 and len(list(keep.iterdir())) == 2
    rows = latency.measure(cycles=350_000, keep=str(keep))
    assert runs[3:] == [100_000, 50_000]
    whole = next(r for r in rows if r["name"] == TOTAL)
    assert whole["n"] == whole["cycles"] == 350_000 and whole["missed"] == 4 and whole["unanswered"] == 8
    assert 100 <= whole["p99.99"] <= 100 * BIN
    said = " ".join(latency.notes(rows))
    assert "350,000 ticks" in said and "0 busy processes" in said and "transport udp" in said


def test_segments_of_other_settings_or_damaged_ones_are_refused(tmp_path, runs):
    latency.measure(cycles=500, keep=str(tmp_path))
    with pytest.raises(ConfigError, match="measured with load 0"):
        latency.measure(cycles=500, load=2, keep=str(tmp_path))
    (tmp_path / "segment_00001.json").write_text("[]")
    with pytest.raises(ConfigError, match="not a segment"):
        latency.measure(cycles=500, keep=str(tmp_path))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cycles": 10}, "cycles must be between 500"),
        ({"load": -1}, "load must be between 0"),
        ({"transport": "tcp"}, "unknown transport 'tcp'"),
    ],
)
def test_bad_settings_are_one_line(options, words, runs):
    with pytest.raises(HumanoidError, match=words):
        latency.measure(**options)
    assert not runs


def test_shared_memory_stands_before_the_loopback_that_carries_discovery(tmp_path):
    root = ET.fromstring(latency.with_shared_memory((share_dir() / "config" / "supervised.xml").read_text()))
    space = "{http://www.eprosima.com}"
    kinds = {
        d.findtext(f"{space}transport_id"): d.findtext(f"{space}type")
        for d in root.iter(f"{space}transport_descriptor")
    }
    used = [e.text for e in root.find(f".//{space}userTransports")]
    assert kinds == {"memory": "SHM", "loopback": "UDPv4"} and used == ["memory", "loopback"]
    environment = latency.environment_of("shm", tmp_path)
    assert environment["FASTDDS_DEFAULT_PROFILES_FILE"] == str(tmp_path / "shared_memory.xml")
    assert environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "SYSTEM_DEFAULT"


LOADS = [
    "from evidence.benchmarks.nodes import latency as l\n"
    "with l._process([sys.executable, '-c', l.BUSY], os.environ) as p:\n    print(p.pid, flush=True); time.sleep(99)",
    "from evidence.benchmarks.drivers import scheduling as s\n"
    "with s.busy(1):\n    print(*open(f'/proc/self/task/{os.getpid()}/children'), flush=True); time.sleep(99)",
]


@pytest.mark.parametrize("code", LOADS, ids=["latency", "drivers"])
def test_a_killed_bench_leaves_no_busy_loop_behind(code):
    command = [sys.executable, "-c", f"import os, sys, time\n{code}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bench:
        child = int(bench.stdout.readline())
        bench.send_signal(signal.SIGKILL)
    end = time.monotonic() + 30
    try:
        while _runs(child):
            assert time.monotonic() < end, "the busy loop goes on"
            time.sleep(0.05)
    finally:
        if _runs(child):
            os.kill(child, signal.SIGKILL)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
