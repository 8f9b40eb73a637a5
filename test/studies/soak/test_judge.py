"""What a soak makes of what it heard: gaps, limits, first commands, and what was said of a fault."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from evidence.studies.soak.observer import COMMANDS, SoakObservations, load, load_pulse, stood_still
from evidence.studies.soak.soak import (
    FILL,
    HANG,
    INTRUDE,
    KILL,
    Fault,
    Promise,
    Seen,
    faults_of,
    judge,
    run_soak,
    soak_report,
)
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import load_robot

CALM = np.zeros((0, 2))  # a machine that never stood still


def heard(seconds=10.0, rate=250.0, cut=None):
    """Commands at a steady rate, none between the times of `cut`; joint states as often."""
    t = np.arange(0.0, seconds, 1.0 / rate)
    kept = t if cut is None else t[(t < cut[0]) | (t >= cut[1])]
    commands = {name: np.zeros(len(kept)) for name in COMMANDS} | {"t": kept, "finite": np.ones(len(kept))}
    return commands, {"t": t, "speed": np.full(len(t), 0.5), "finite": np.ones(len(t))}


def seen(what=KILL, target="simulator", gap=1.5, named=False):
    return Seen(Fault(what, target, Promise(gap, named)), 2.0, 8.0)


def test_a_calm_time_breaks_nothing():
    s = seen(gap=0.02)
    judge(s, *heard(), [], CALM)
    assert s.broken == [] and s.gap == pytest.approx(0.004, abs=1e-6) and s.speed == 0.5


@pytest.mark.parametrize(("cut", "ok"), [((3.0, 4.2), True), ((3.0, 4.9), False), ((3.0, 99.0), False)])
def test_a_gap_longer_than_promised_is_told_also_one_that_does_not_end(cut, ok):
    s = seen()
    judge(s, *heard(cut=cut), [], CALM)
    assert (s.broken == []) is ok
    assert s.gap == pytest.approx(min(cut[1], 8.0) - 3.0, abs=0.01)


@pytest.mark.parametrize(
    ("late", "stood", "ok"),
    [
        ([(3.029, 0.026)], 0.026, True),  # woken just before the commands come back
        ([(3.035, 0.026)], 0.026, True),  # and just after
        ([(3.029, 0.005)], 0.005, False),
        ([(2.9, 0.026), (3.2, 0.026)], 0.0, False),  # before the gap, and after it
        ([(3.029, 0.5)], 0.03, True),  # no longer than the gap
    ],
)
def test_a_machine_that_stands_still_is_no_ones_fault(late, stood, ok):
    s = seen(gap=0.02)
    judge(s, *heard(cut=(3.001, 3.029)), [], np.array(late))
    assert s.gap == pytest.approx(0.032, abs=0.005) and s.stood == pytest.approx(stood, abs=0.003)
    assert (s.broken == []) is ok


def test_the_pulse_notes_a_process_that_was_stopped(tmp_path):
    """Halted for 0.3 s it is woken that much late; without the right to be above all others it says nothing."""
    code = "import sys\nfrom pathlib import Path\nfrom evidence.studies.soak import observer\n"
    for right in (True, False):
        own = f"{code}observer.granted = lambda: {right}\nobserver.beat(Path(sys.argv[1]))"
        path = tmp_path / f"{right}.npz"
        with subprocess.Popen([sys.executable, "-c", own, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            time.sleep(0.1)
            begin = time.time()
            process.send_signal(signal.SIGSTOP)
            stopped = time.time()
            time.sleep(0.3)
            least = time.time() - stopped
            process.send_signal(signal.SIGCONT)
            end = time.time()
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
        late = load_pulse(path)
        assert len(late) == 0 or right
        if right:
            assert least - 0.02 < stood_still(late, begin, end) < end - begin + 0.02
            assert stood_still(late, begin + 5.0, begin + 6.0) == 0.0


def test_the_first_command_after_a_gap_is_where_the_robot_is():
    commands, states = heard(cut=(3.0, 4.0))
    commands["off"][np.searchsorted(commands["t"], 3.9)] = 0.3
    s = seen()
    judge(s, commands, states, [], CALM)
    assert s.first_off == pytest.approx(0.3) and "0.300 rad from the robot" in s.broken[0]


@pytest.mark.parametrize(
    ("where", "column", "value", "words"),
    [
        (0, "speed", 1.01, "a command at 1.01"),
        (0, "outside", 0.1, "beyond a range"),
        (0, "finite", 0.0, "a non-finite number"),
        (1, "speed", 1.2, "a joint at 1.20"),
    ],
)
def test_limits_hold_in_all_that_is_heard_but_not_outside_the_window(where, column, value, words):
    for at, count in ((5.0, 1), (9.0, 0)):
        told = heard()
        told[where][column][np.searchsorted(told[where]["t"], at)] = value
        s = seen()
        judge(s, *told, [], CALM)
        assert len(s.broken) == count and all(words in text for text in s.broken)


def test_what_must_be_said_counts_only_in_time_and_when_it_is_bad_news():
    says = [[1.0, "a", 2, "too soon"], [5.0, "a", 0, "ok"], [5.0, "b", 1, "somebody else commands"]]
    s = seen(INTRUDE, "commands", np.inf, named=True)
    judge(s, *heard(), says, CALM)
    assert s.named == "b: somebody else commands" and not s.broken
    s = seen(INTRUDE, "commands", np.inf, named=True)
    judge(s, *heard(), says[:2], CALM)
    assert s.broken == ["nothing on /diagnostics"]


def test_of_a_full_disk_the_recorder_itself_must_say_so():
    (fault,) = [f for f in faults_of(("simulator",)) if f.what == FILL]
    assert fault.name == "fill disk" and fault.promise.gap == 0.02
    for said, broken in (("No space left on device", []), ("", ["the recorder reported nothing"])):
        s = Seen(fault, 2.0, 8.0, said=said)
        judge(s, *heard(), [[5.0, "b", 1, "somebody else commands"]], CALM)
        assert s.broken == broken
    s = Seen(fault, 2.0, 8.0, said="No space left on device")
    judge(s, *heard(cut=(3.0, 3.1)), [], CALM)
    assert len(s.broken) == 1 and "(guaranteed 0.02)" in s.broken[0]


def test_an_intruder_is_not_judged_by_what_it_says_itself():
    commands, states = heard()
    commands["speed"][:], commands["outside"][:], states["speed"][:] = 9.0, 9.0, 9.0
    s = seen(INTRUDE, "commands", np.inf)
    judge(s, commands, states, [], CALM)
    assert s.broken == ["a joint at 9.00 of its speed limit"]
    s = seen(INTRUDE, "states", np.inf)
    judge(s, commands, states, [], CALM)
    assert s.broken == []


def test_the_observer_measures_commands_and_keeps_them(tmp_path):
    robot = load_robot("hrp2", "fixed")
    h, q, names = SoakObservations(robot), robot.postures["neutral"].copy(), robot.joint_names
    h.state(names, q, 0.5 * robot.velocity, 0.0)
    h.command(names, 0.0, q, np.zeros(robot.n), 0.0)
    moved = q.copy()
    moved[3] += 0.2
    h.command(names[::-1], 0.1, moved[::-1], (1.5 * robot.velocity)[::-1], 0.1)
    out = robot.upper.copy()
    out[5] += 0.25
    h.command(names, 0.2, out, np.full(robot.n, np.nan), 0.2)
    h.status("ik", 1, "late", 0.1)
    h.status("ik", 1, "late", 0.2)
    h.save(tmp_path / "heard.npz")
    commands, states, told = load(tmp_path / "heard.npz")
    assert commands["step"][:2] == pytest.approx([0.0, 0.2]) and commands["off"][1] == pytest.approx(0.2)
    assert commands["speed"][1] == pytest.approx(1.5) and states["speed"] == pytest.approx([0.5])
    assert commands["outside"] == pytest.approx([0.0, 0.0, 0.25]) and commands["finite"].tolist() == [1, 1, 0]
    assert told == [[0.1, "ik", 1, "late"]]


def test_a_command_after_a_silence_is_compared_with_the_states_that_come_next(tmp_path):
    """A new robot stands elsewhere than the one that died: what that one said last is no measure."""
    robot = load_robot("hrp2", "fixed")
    h, q, names = SoakObservations(robot), robot.postures["neutral"].copy(), robot.joint_names
    elsewhere = q.copy()
    elsewhere[3] += 1.0
    h.state(names, q, q, 0.0)
    h.command(names, 0.5, elsewhere, q, 0.5)
    h.state(names, elsewhere - 0.2, q, 0.51)
    h.command(names, 0.52, elsewhere, q, 0.52)
    h.command(names, 0.7, elsewhere, q, 0.7)
    h.save(tmp_path / "heard.npz")
    off = load(tmp_path / "heard.npz")[0]["off"]
    assert off[:2] == pytest.approx([0.2, 0.2]) and np.isnan(off[2]), "after the last no states came"


def test_a_stack_has_the_faults_of_its_nodes():
    names = [f.name for f in faults_of(("simulator", "walker"))]
    assert "kill -9 simulator" in names and "hang simulator" in names and "intrude flood" in names
    assert not any("viewer" in n or "estimator" in n for n in names)
    assert {f.what for f in faults_of(("viewer",))} == {KILL, HANG, INTRUDE, FILL}


def test_what_cannot_be_soaked_is_refused_before_anything_runs():
    with pytest.raises(ConfigError, match="hours must be"):
        run_soak(hours=0.0)
    with pytest.raises(UnknownNameError, match="robot"):
        run_soak("hpr2")


def test_a_soak_can_be_read_and_written(tmp_path):
    calm, broken = seen(gap=0.02), seen()
    judge(calm, *heard(), [], CALM)
    judge(broken, *heard(cut=(3.0, 99.0)), [], CALM)
    calm.resynced = True
    report = soak_report(
        [calm, broken], {"robot": "hrp2", "stack": "imitation", "hours": 1.0, "seed": 0, "complaints": 0}
    )
    report.write(tmp_path / "out")
    data = json.loads((tmp_path / "out" / "soak.json").read_text())
    assert data["soak"]["robot"] == "hrp2" and len(data["faults"]) == 2 and len(data["broken"]) >= 1
    assert any("2 during motion, 1 of them without violation; 0 at rest" in str(part) for part in report.parts)
    assert "stopped until ~/resync, 1 times: kill -9 simulator" in report.parts


@pytest.mark.parametrize(("slow", "kept"), [(0, True), (1, True), (4, False)])
def test_of_what_is_usual_one_in_twenty_may_be_slower(slow, kept):
    faults = [Seen(Fault(KILL, "simulator", Promise(3.0, usual=1.5)), 2.0, 8.0) for _ in range(40)]
    for k, s in enumerate(faults):
        judge(s, *heard(cut=(3.0, 4.9 if k < slow else 4.0)), [], CALM)
    what = {"robot": "hrp2", "stack": "imitation", "hours": 1.0, "seed": 0, "complaints": 0}
    broken = soak_report(faults, what).data["broken"]
    assert (broken == []) is kept
    assert kept or broken == ["95 % of 40 essential nodes that were killed: 1.90 s (guaranteed 1.5)"]


def test_faults_of_a_robot_at_rest_are_counted_apart():
    commands, states = heard()
    moving, still, slow, broken = seen(gap=0.02), seen(gap=0.02), seen(gap=0.02), seen(gap=0.001)
    judge(moving, commands, states, [], CALM)
    judge(broken, commands, states, [], CALM)
    judge(slow, commands, states | {"speed": np.full(len(states["t"]), 0.01)}, [], CALM)
    after = np.where(states["t"] < still.begin + 0.5, 0.0, 0.5)  # motion that begins after the fault is none
    judge(still, commands, states | {"speed": after}, [], CALM)
    assert [s.moved for s in (moving, broken, slow, still)] == [True, True, False, False]
    what = {"robot": "hrp2", "stack": "imitation", "hours": 1.0, "seed": 0, "complaints": 0}
    report = soak_report([moving, broken, slow, still], what)
    assert report.data["during_motion"] == {"faults": 2, "kept": 1}
    assert report.data["at_rest"] == {"faults": 2, "kept": 2}
    assert "4 faults: 2 during motion, 1 of them without violation; 2 at rest" in report.parts[1]
