"""Recordings of any kind on the command line: read, retargeted, written; refused in one line with exit code 2."""

from __future__ import annotations

import json
import pickle
import signal
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from humanoid_control.mocap import load_body_points
from test.cli.conftest import INTERRUPTED
from test.mocap.formats.test_bvh_dialects import UNKNOWN, bvh
from test.mocap.formats.test_gltf import person
from test.mocap.formats.test_npz import Command
from test.mocap.formats.test_smpl import AMASS


@pytest.fixture(scope="module")
def smpl_walk(tmp_path_factory, mocap):
    """Positions of a real walk under the names of SMPL, in an NPZ file."""
    body = load_body_points(mocap("cmu_bvh/07_01.bvh"))
    names = {"toe": "foot", "sternum": "collar"}
    labels = [f"{'left' if n[0] == 'l' else 'right'}_{names.get(n[2:], n[2:])}" for n in body.names if n[1] == "_"]
    columns = [k for k, n in enumerate(body.names) if n[1] == "_"]
    path = tmp_path_factory.mktemp("walk") / "walk.npz"
    np.savez(path, positions=body.positions[:, columns], labels=np.array(labels), fps=body.rate)
    return path


def test_an_archive_of_an_amass_file_is_shown(humanoid):
    np.savez(humanoid.folder / "walk.npz", **AMASS)
    with zipfile.ZipFile(humanoid.folder / "clips.zip", "w") as archive:
        archive.write(humanoid.folder / "walk.npz", "walk.npz")
    result = humanoid("clip", "clips.zip:walk.npz", "--json")
    assert result.returncode == 0, result.stderr
    shown = json.loads(result.stdout)
    assert shown["rate_hz"] == 120
    assert shown["marker_sets"][0]["name"] == "smpl"
    assert {"left_toe", "right_heel", "left_thumb_side"} <= set(shown["labels"])


def test_labels_that_no_set_knows_are_shown_as_they_are_read(humanoid):
    (humanoid.folder / "a.bvh").write_bytes(bvh(*UNKNOWN["unreal"]))
    result = humanoid("clip", "a.bvh")
    assert result.returncode == 0, result.stderr
    said = " ".join((result.stdout + result.stderr).split())
    assert "from their names thigh_l as l_hip" in said
    assert "--draft my_set.yaml drafts one" in said


@pytest.mark.parametrize(
    ("layout", "suffix"), [("gmr", "npz"), ("beyondmimic", "csv"), ("keyframes", "xml"), ("", "mcap")]
)
def test_a_walk_becomes_what_other_programs_read(humanoid, smpl_walk, layout, suffix):
    options = ["--format", layout] if layout else []
    result = humanoid("retarget", smpl_walk, "--whole-body", "-o", f"walk.{suffix}", *options, "--json")
    assert result.returncode == 0, result.stderr
    row = json.loads(result.stdout)["rows"][0]
    assert row["slip_max_mm"] < 2
    assert (humanoid.folder / f"walk.{suffix}").stat().st_size > 1000


def test_a_folder_of_files_for_another_program(humanoid, smpl_walk):
    result = humanoid(
        "retarget", smpl_walk, "--whole-body", "--robot", "hrp2", "-o", "out/", "--format", "protomotions"
    )
    assert result.returncode == 0, result.stderr
    with np.load(humanoid.folder / "out" / "hrp2.npz") as arrays:
        assert arrays["base_frame_wxyz"].shape == (316, 4)


def write_mistakes(folder: Path) -> None:
    (folder / "program.pkl").write_bytes(pickle.dumps(Command()))
    (folder / "junk.fbx").write_bytes(b"junk")
    (folder / "video.mp4").write_bytes(b"junk")
    (folder / "cut.glb").write_bytes(person().glb()[:200])
    np.savez(folder / "robot.npz", dof_pos=np.zeros((3, 29)))
    with zipfile.ZipFile(folder / "two.zip", "w") as archive:
        archive.writestr("a.bvh", "x")
        archive.writestr("b.bvh", "x")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("program.pkl", "if you trust it: python -c"),
        ("junk.fbx", "not an FBX file"),
        ("video.mp4", "convert it to a recording with a pose tracker"),
        ("cut.glb", "copy or export it again"),
        ("robot.npz", "the motion of a robot"),
        ("two.zip", "name one, such as two.zip:a.bvh"),
        ("two.zip:c.bvh", "has no member 'c.bvh'"),
        ("none.glb:walk", "clip not found"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_code_2(humanoid, name, words):
    write_mistakes(humanoid.folder)
    before = sorted(humanoid.folder.iterdir())
    result = humanoid("retarget", name, "--whole-body", "-o", "out.npz")
    assert result.returncode == 2
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and words in lines[0], result.stderr
    assert sorted(humanoid.folder.iterdir()) == before


@pytest.mark.nightly
def test_interrupted_it_ends_and_leaves_nothing(humanoid, smpl_walk):
    with np.load(smpl_walk) as file:
        arrays = dict(file)
    there = np.concatenate([arrays["positions"], arrays["positions"][::-1]])
    np.savez(humanoid.folder / "long.npz", **{**arrays, "positions": np.tile(there, (60, 1, 1))})
    process = humanoid.start("retarget", "long.npz", "--whole-body", "-o", "out.mcap")
    end = time.monotonic() + 90
    while "hrp2:" not in (log := Path(process.log_path).read_text()) and time.monotonic() < end:
        assert process.poll() is None, log
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) in INTERRUPTED
    assert "Traceback" not in Path(process.log_path).read_text()
    left = {p.name for p in humanoid.folder.iterdir() if not p.name.startswith(("command_", "state"))}
    assert left == {"long.npz"}
