"""`humanoid study tendons`: table, JSON, plots; mistakes in one line."""

import json
import signal
import time
from pathlib import Path

import pytest

from test.cli.conftest import INTERRUPTED


def test_table_json_and_folder(humanoid):
    args = ("study", "tendons", "--only", "e4", "--seeds", 1, "--steps", 50)
    result = humanoid(*args, "--json", "-o", "out")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert json.loads((humanoid.folder / "out" / "tendons.json").read_text()) == report
    assert sorted(p.name for p in (humanoid.folder / "out").iterdir()) == ["E4.png", "tendons.json"]
    assert (humanoid.folder / "out" / "E4.png").read_bytes()[:4] == b"\x89PNG"
    (found,) = report["experiments"]
    assert (report["seeds"], report["steps"], found["name"]) == (1, 50, "E4")
    row = found["rows"][0]
    assert row["unit"] == "deg" and len(row["median"]) == len(row["worst"]) == len(row["joints"]) == 4
    goals = {r["name"]: r.get("goal") for r in found["rows"]}
    assert len(goals) == len(found["rows"]) == 22 and goals["relative r3"] == "median < 1, worst < 5"
    assert "relative r3, arms 5 % wrong" in goals and "relative r2, polynomials" in goals
    result = humanoid(*args)
    assert result.returncode == 0 and "│ E4" in result.stdout
    for word in ("median", "worst", "goal", "almost the same", "last fifth", "1 seeds, 50 steps"):
        assert word in result.stdout
    assert sum("relative r3" in line for line in result.stdout.splitlines()) == 7, "exact, fitted, and wrong arms"
    result = humanoid(*args, "--details")
    for word in ("l_elbow_pitch", "median (worst) of 1 seeds"):
        assert word in result.stdout


MISTAKES = [
    (["--only", "E7"], "unknown experiment 'E7'"),
    (["--robot", "kengoro"], "did you mean kengoro_upper"),
    (["--robot", "hrp2", "--only", "E4"], "hrp2 lacks 'neck_top_pitch'"),
    (["--seeds", "0"], "seeds must be at least 1"),
    (["--steps", "3"], "steps must be at least 50"),
    (["--only", "others", "--models", "nowhere"], "the folder nowhere does not exist"),
    (["--only", "E4,others", "--models", "."], "no myoelbow_1dof6muscles*.xml in ."),
    (["--only", "E4", "--models", "nowhere"], "the folder nowhere does not exist"),
    (["--only", ","], "argument --only: ',' names nothing"),
    (["-o", "/proc/out", "--only", "E4"], "/proc/out cannot be written"),
    (["--poses", "3"], "--poses is not for the study 'tendons'"),
    (["-o", "nowhere/out"], "folder nowhere does not exist"),
]


@pytest.mark.parametrize(("args", "words"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_a_mistake_is_one_line_and_leaves_nothing(humanoid, args, words):
    result = humanoid("study", "tendons", *args, HUMANOID_TEST_DATA="")
    assert result.returncode == 2 and "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and words in lines[0], result.stderr
    assert list(humanoid.folder.iterdir()) == []


def test_an_interrupt_ends_it_and_leaves_nothing(humanoid):
    process = humanoid.start("study", "tendons", "--only", "E2", "--steps", 3000, "-o", "out")
    end = time.monotonic() + 60
    while "study: " not in Path(process.log_path).read_text() and time.monotonic() < end:
        time.sleep(0.1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(60) in INTERRUPTED
    assert not (humanoid.folder / "out").exists()
