"""What a process is granted, and what is told of the machine."""

import os
import resource
import subprocess
import sys

import pytest

from humanoid_control.hardware.realtime import (
    pin,
    processors,
    real_time_advice,
    real_time_facts,
    real_time_report,
)


def in_a_process(code):
    """What a process of its own prints: what it asks for would stay with this one."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_process_runs_where_it_is_told_to_and_its_objects_are_not_collected():
    cpu = min(os.sched_getaffinity(0))
    code = "import os, gc; from humanoid_control.hardware.realtime import become_real_time\n"
    code += f"print(become_real_time(0, '{cpu}'), os.sched_getaffinity(0), gc.get_freeze_count() > 0)"
    assert in_a_process(code).split("\n")[0] == f"cpu {cpu} {{{cpu}}} True"
    assert "normal" in in_a_process(code.replace(f"'{cpu}'", "'many'"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to real-time priority")
def test_priority_and_locked_memory_are_granted_to_who_may():
    code = "import os; from humanoid_control.hardware.realtime import become_real_time, real_time_report\n"
    code += (
        "said = become_real_time(10)\nprint(said, os.sched_getparam(0).sched_priority, real_time_report()['policy'])\n"
    )
    code += "print(open('/proc/self/status').read())"
    out = in_a_process(code)
    locked = int(next(line for line in out.splitlines() if line.startswith("VmLck")).split()[1])
    if "fifo" in out:
        assert "10 fifo" in out.splitlines()[0]
    assert ("memory locked" in out.splitlines()[0]) == (locked > 0)


def test_lists_of_processors():
    assert processors("0,2-4") == {0, 2, 3, 4} and processors("7") == {7}
    for wrong in ("", "a", "1-"):
        with pytest.raises(ValueError):
            processors(wrong)


def test_the_report_says_what_the_system_says(tmp_path):
    assert real_time_report()["rtprio_limit"] == str(resource.getrlimit(resource.RLIMIT_RTPRIO)[0])
    empty = real_time_report(tmp_path)
    assert empty["preempt_rt"] == "no" and empty["governor"] == "not known" and not real_time_advice(tmp_path)
    for path, text in {
        "sys/kernel/realtime": "1\n",
        "sys/devices/system/cpu/isolated": "2-3\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "sys/bus/usb-serial/devices/ttyUSB0/latency_timer": "16\n",
        "sys/bus/usb-serial/devices/ttyUSB1/latency_timer": "1\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    full = real_time_report(tmp_path)
    assert (full["preempt_rt"], full["isolated_cpus"], full["governor"]) == ("yes", "2-3", "powersave")
    governor, serial = real_time_advice(tmp_path)
    assert "performance" in governor and serial.startswith("ttyUSB0 waits 16 ms") and "echo 1 >" in serial
    remedies = {f.name: f.remedy for f in real_time_facts(tmp_path)}
    assert not remedies["preempt_rt"] and not remedies["isolated_cpus"] and not remedies["latency_timer ttyUSB1"]
    assert "performance" in remedies["governor"] and "latency_timer" in remedies["latency_timer ttyUSB0"]
    remedies = {f.name: f.remedy for f in real_time_facts(tmp_path / "none")}
    assert "PREEMPT_RT" in remedies["preempt_rt"] and "isolcpus" in remedies["isolated_cpus"]


def test_limits_of_a_user_are_mended_in_the_file_of_limits(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    remedies = {f.name: f.remedy for f in real_time_facts()}
    assert "- rtprio 98" in remedies["rtprio_limit"] and "- memlock unlimited" in remedies["memlock_limit"]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    facts = {f.name: f for f in real_time_facts()}
    assert not facts["memlock_limit"].remedy and facts["memlock_limit"].value == "unlimited"


def test_processors_that_are_none_are_refused_with_those_that_are():
    before = os.sched_getaffinity(0)
    assert pin("") == "" and "got 'fast'" in pin("fast")
    assert f"may run on {min(before)}" in pin("4000") and os.sched_getaffinity(0) == before
    code = "import os; from humanoid_control.hardware.realtime import pin\n"
    code += f"print([pin('{min(before)}')], os.sched_getaffinity(0))"
    assert in_a_process(code) == f"[''] {{{min(before)}}}\n"


COLLECT = """
import gc
from humanoid_control.hardware.realtime import SpareTimeCollector

class Ring:
    __slots__ = ("__weakref__", "me")  # without a dictionary, which counts as an object in Python 3.10

    def __init__(self):
        self.me = self

alive = [0]
def rings(n):
    for _ in range(n):
        alive[0] += 1
        weakref.finalize(Ring(), lambda: alive.__setitem__(0, alive[0] - 1))
import weakref
c = SpareTimeCollector()
"""


def test_garbage_is_collected_in_spare_time_only():
    code = (
        COLLECT
        + """
rings(5000)
print(alive[0], c.run(0.0), alive[0], c.run(1.0), alive[0] < 100, c.run(1.0))
c.close()
print(gc.isenabled(), gc.get_freeze_count())
"""
    )
    assert in_a_process(code) == "5000 False 5000 True True False\nTrue 0\n"


def test_garbage_that_was_alive_when_it_was_looked_at_goes_too():
    """An object that outlives a collection of the youngest is looked at again, but less often."""
    code = (
        COLLECT
        + """
held = Ring()
word = weakref.ref(held)
rings(1000)
c.run(1.0)
del held
rounds = 0
while word() is not None and rounds < 1000:
    rings(1000)
    c.run(1.0)
    rounds += 1
print(1 < rounds < 200)
"""
    )
    assert in_a_process(code) == "True\n"


def test_a_loop_without_spare_time_does_not_fill_memory():
    code = (
        COLLECT.replace("weakref.finalize(Ring(), lambda: alive.__setitem__(0, alive[0] - 1))", "Ring()")
        + """
for _ in range(100):
    rings(1000)
    if c.run(0.0):
        print(gc.get_count()[0] < 100)
        break
"""
    )
    assert in_a_process(code) == ""
    assert in_a_process(code.replace("range(100)", "range(1000)")) == "True\n"
