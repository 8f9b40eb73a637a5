"""`humanoid study worlds`: a table, JSON, a file; mistakes in one line; an interrupt that leaves nothing behind."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from test.cli.conftest import INTERRUPTED


def test_every_combination_has_a_row_in_json_table_and_file(humanoid):
    args = ("study", "worlds", "--robot", "suralp", "--vary", "friction=0.3,0.8", "--vary", "step=0.002,0.001")
    args += ("--seconds", 1.2, "--workers", 1)
    result = humanoid(*args, "--json", "-o", "out")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert [(w["friction"], w["step"]) for w in report["worlds"]] == [
        (0.3, 0.002),
        (0.3, 0.001),
        (0.8, 0.002),
        (0.8, 0.001),
    ]
    for world in report["worlds"]:
        assert world["stood"] and world["fell_at"] is None and world["failure"] is None
        assert world["drift"] < 0.02 and 0 < world["torque_share"] < 1 and world["real_time_factor"] > 0.1
    assert json.loads((humanoid.folder / "out" / "worlds.json").read_text())["worlds"] == report["worlds"]
    table = humanoid("study", "worlds", "--robot", "suralp", "--seconds", 1.1)
    for word in ("stood", "drift mm", "torque %", "real time", "_flexion"):
        assert word in table.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--vary", "fricton=1"], "did you mean friction"),
        (["--vary", "friction"], "must be name=values"),
        (["--vary", "friction=a,b"], "are not numbers"),
        (
            ["--vary", "friction=-1,1", "--seconds", "1.1", "--workers", "1"],
            "variation friction=-1: contact friction must",
        ),
        (["--robot", "lolla"], "did you mean lola"),
        (["--engine", "mujocco"], "did you mean mujoco"),
        (["--seconds", "0.5"], "simulate longer"),
        (["--only", "H1"], "--only is not for the study 'worlds'"),
        (["-o", "nowhere/out"], "folder nowhere does not exist"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_mistake_is_one_line(humanoid, args, words):
    result = humanoid("study", "worlds", *args)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and words in lines[0], result.stderr


@pytest.mark.nightly
def test_an_interrupt_ends_it_and_its_workers(humanoid):
    process = humanoid.start("study", "worlds", "--vary", "stiffness=30,40,50,60", "--seconds", 600, "--workers", 2)
    workers: list[str] = []
    end = time.monotonic() + 30
    while len(workers) < 2 and time.monotonic() < end:
        time.sleep(0.1)
        found = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True)
        workers = found.stdout.split()
    assert len(workers) == 2, Path(process.log_path).read_text()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) in INTERRUPTED
    assert "Traceback" not in Path(process.log_path).read_text()
    end = time.monotonic() + 3
    while any(Path(f"/proc/{w}").exists() for w in workers) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{w}").exists() for w in workers)
