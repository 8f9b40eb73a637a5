"""`humanoid study tendons`: table, JSON, plots; mistakes in one line."""

import json
import signal
import time

import pytest

from evidence.studies.kawaharazuka2018 import report, testbed
from humanoid_control.cli.main import main
from test.cli.conftest import INTERRUPTED


@pytest.fixture
def once(monkeypatch):
    """The study is run once for the same options, with short training: what it is asked for, and what it prints."""
    run, found, asked = report.run_study, {}, []
    monkeypatch.setattr(testbed, "ITERATIONS", 20)

    def run_study(show, **options):
        asked.append(options)
        if str(options) not in found:
            found[str(options)] = run(show=show, **options)
        return found[str(options)]

    monkeypatch.setattr(report, "run_study", run_study)
    return asked


@pytest.mark.nightly
def test_table_json_and_folder(once, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["study", "tendons", "--only", "e4", "--seeds", "1", "--steps", "50"]
    assert main([*words, "--json", "-o", "out"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "out" / "tendons.json").read_text()) == printed
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["E4.png", "tendons.json"]
    assert (tmp_path / "out" / "E4.png").read_bytes()[:4] == b"\x89PNG"
    (found,) = printed["experiments"]
    assert (printed["seeds"], printed["steps"], found["name"]) == (1, 50, "E4")
    row = found["rows"][0]
    assert row["unit"] == "deg" and len(row["median"]) == len(row["worst"]) == len(row["joints"]) == 4
    goals = {r["name"]: r.get("goal") for r in found["rows"]}
    assert len(goals) == len(found["rows"]) == 22 and goals["relative r3"] == "median < 1, worst < 5"
    assert "relative r3, arms 5 % wrong" in goals and "relative r2, polynomials" in goals
    assert main(words) == 0
    said = capsys.readouterr().out
    for word in ("│ E4", "median", "worst", "goal", "almost the same", "last fifth", "1 seeds, 50 steps"):
        assert word in said
    assert sum("relative r3" in line for line in said.splitlines()) == 7, "exact, fitted, and wrong arms"
    assert main([*words, "--details"]) == 0
    said = capsys.readouterr().out
    for word in ("l_elbow_pitch", "median (worst) of 1 seeds"):
        assert word in said
    assert once == 3 * [{"only": ["e4"], "seeds": 1, "steps": 50}]


MISTAKES = [
    (["--only", "E7"], "unknown experiment 'E7'"),
    (["--robot", "kengoro"], "did you mean kengoro_upper"),
    (["--robot", "hrp2", "--only", "E4"], "hrp2 lacks 'neck_top_pitch'"),
    (["--seeds", "0"], "seeds must be at least 1"),
    (["--steps", "3"], "steps must be at least 50"),
    (["--only", "others", "--models", "nowhere"], "the folder nowhere does not exist"),
    (["--only", "E4,others", "--models", "."], "no myoelbow_1dof6muscles*.xml in ."),
    (["--only", "E4", "--models", "nowhere"], "the folder nowhere does not exist"),
    (["--only", ","], "argument --only: ',' contains no name"),
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


@pytest.mark.nightly
def test_an_interrupt_ends_it_and_leaves_nothing(humanoid):
    log = humanoid.folder.parent / "study.log"
    words = ["study", "tendons", "--only", "E2", "--steps", "3000", "-o", "out"]
    process = humanoid.warm.start("humanoid_control.cli.main", words, humanoid.env, humanoid.folder, log)
    end = time.monotonic() + 60
    while "study: " not in log.read_text() and time.monotonic() < end:
        time.sleep(0.1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(60) in INTERRUPTED
    assert not (humanoid.folder / "out").exists()
