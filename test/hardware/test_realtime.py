"""What a process is granted, and what is told of the machine."""

import os
import resource
import subprocess
import sys

import pytest

from humanoid_control.hardware.realtime import processors, real_time_advice, real_time_report


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
