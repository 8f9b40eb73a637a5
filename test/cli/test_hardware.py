"""`humanoid hardware`: drafts, checks, scans; a joint jogged at a terminal."""

import os
import pty
import re
import select
import subprocess
import time

import pytest


@pytest.fixture
def draft(humanoid):
    done = humanoid("hardware", "new", "--robot", "hrp2", "--bus", "loopback", "-o", "hrp2.hardware.yaml")
    assert done.returncode == 0, done.stderr
    return humanoid.folder / "hrp2.hardware.yaml"


def one_line(result):
    assert result.returncode == 2, f"{result.stdout}\n{result.stderr}"
    (line,) = [line for line in result.stderr.strip().splitlines() if line.strip()]
    return line


def test_a_draft_is_checked_measured_and_scanned(humanoid, draft):
    shown = humanoid("hardware", "check", draft.name)
    assert shown.returncode == 0, shown.stderr
    assert "loopback" in shown.stdout and "nothing is missing" in shown.stdout and "measured" not in shown.stdout
    live = humanoid("hardware", "check", draft.name, "--live")
    assert live.returncode == 0, live.stdout + live.stderr
    assert "no reason to refuse power" in live.stdout and "l_elbow_flexion" in live.stdout
    assert "l_elbow_flexion" in humanoid("hardware", "scan", draft.name).stdout


def test_a_joint_outside_its_range_is_said_with_code_1(humanoid, draft):
    draft.write_text(re.sub(r"(l_elbow_flexion:.*start: )[-\d.]+", r"\g<1>3.5", draft.read_text()))
    live = humanoid("hardware", "check", draft.name, "--live")
    assert live.returncode == 1 and "outside its range" in live.stdout.replace("\n", " ")


ZEROS = """schema: humanoid_calibration/1
actuators:
  l_elbow_flexion: {zero: %s}
"""


def test_a_calibration_of_another_place_is_taken(humanoid, draft):
    """Its zeros move what is measured; a joint that it lacks is named; one that does not exist is a mistake."""
    (humanoid.folder / "other.yaml").write_text(ZEROS % "0.25")
    start = float(re.search(r"l_elbow_flexion:.*start: ([-\d.]+)", draft.read_text())[1])
    live = humanoid("hardware", "check", draft.name, "--live", "--calibration", "other.yaml").stdout
    assert f"{start + 0.25:.3f}"[:4] in re.search(r"l_elbow_flexion[^\n]*", live)[0]
    assert "0.25" not in re.search(r"r_elbow_flexion[^\n]*", live)[0]
    needs = "\\1needs_calibration: true, "
    draft.write_text(re.sub(r"([lr]_elbow_flexion: *\{)", needs, draft.read_text()))
    shown = " ".join(humanoid("hardware", "check", draft.name, "--calibration", "other.yaml").stdout.split())
    assert "calibration: r_elbow_flexion not calibrated" in shown and "l_elbow_flexion not" not in shown
    beside = " ".join(humanoid("hardware", "check", draft.name).stdout.split())
    assert "l_elbow_flexion not calibrated; r_elbow_flexion not calibrated" in beside
    assert "gone.yaml: calibration not found" in one_line(
        humanoid("hardware", "check", draft.name, "--calibration", "gone.yaml")
    )
    (humanoid.folder / "other.yaml").write_text(ZEROS.replace("l_elbow", "l_elbw") % "0.25")
    assert "did you mean l_elbow_flexion" in one_line(
        humanoid("hardware", "jog", draft.name, "l_elbow_flexion", "--to", "0.5", "--calibration", "other.yaml")
    )


def test_mistakes_are_one_line(humanoid, draft):
    assert "exists" in one_line(humanoid("hardware", "new", "--robot", "hrp2", "--bus", "loopback", "-o", draft.name))
    assert "did you mean loopback" in one_line(
        humanoid("hardware", "new", "--robot", "hrp2", "--bus", "lopback", "-o", "x.yaml")
    )
    assert "needs a terminal" in one_line(humanoid("hardware", "jog", draft.name, "l_elbow_flexion", "--to", "0.5"))
    draft.write_text(draft.read_text().replace("rate:", "rat:"))
    assert "hrp2.hardware.yaml:4: unknown key 'rat': did you mean rate" in one_line(
        humanoid("hardware", "check", draft.name)
    )


def test_a_joint_is_jogged_while_enter_is_held(humanoid, draft):
    start = float(re.search(r"l_elbow_flexion:.*start: ([-\d.]+)", draft.read_text())[1])
    slow = draft.read_text().replace("rate: 500 ", "rate: 100 ").replace("soft_start: 2.0", "soft_start: 0.2")
    draft.write_text(slow)
    words = ("hardware", "jog", draft.name, "l_elbow_flexion", "--to", start + 0.1, "--late-tolerance", 50)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        humanoid.argv(*words), env=humanoid.env,
        cwd=humanoid.folder, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    said, end = "", time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        if select.select([master], [], [], 0.1)[0]:
            try:
                said += os.read(master, 4096).decode(errors="replace")
            except OSError:
                break
        if "RUN" in said:
            os.write(master, b"\n")
    code = process.wait(20)
    os.close(master)
    positions = [float(x) for x in re.findall(r"l_elbow_flexion ([-+][\d.]+) rad", said)]
    assert code == 0, said
    assert positions[0] == pytest.approx(start, abs=0.01) and positions[-1] == pytest.approx(start + 0.1, abs=0.02)
    assert "MONITOR" in said


WINCHES = """schema: humanoid_hardware/1
robot: kengoro_upper
rate: 100
buses:
  left: {transport: loopback}
tendons:
  l_biceps: {bus: left, id: 1, ratio: 2.0e-3, zero: 0.30}
  l_triceps: {bus: left, id: 2, ratio: -2.0e-3, zero: ZERO, sensor: true}
"""


@pytest.mark.nightly
def test_a_file_of_muscle_units_is_checked_and_measured(humanoid):
    path = humanoid.folder / "arm.hardware.yaml"
    path.write_text(WINCHES.replace("ZERO", "0.30"))
    said = humanoid("hardware", "check", path, "--live")
    assert said.returncode == 0, said.stderr
    assert "2 driven tendons" in said.stdout and "no reason to refuse power" in said.stdout
    assert "1: l_biceps" in humanoid("hardware", "scan", path).stdout
    path.write_text(WINCHES.replace("ZERO", "0.90"))
    said = humanoid("hardware", "check", path, "--live")
    assert said.returncode == 1 and "l_triceps: 0.900 m of wire is outside its travel" in " ".join(said.stdout.split())
    for words, refusal in (
        (("jog", path, "l_biceps", "--to", "1"), "tendon_driver moves all tendons together"),
        (("check", path, "--calibration", path), "--calibration applies to joints"),
    ):
        said = humanoid("hardware", *words)
        assert said.returncode == 2 and refusal in said.stderr and len(said.stderr.splitlines()) == 1
