"""Recordings of motion as other people's programs wrote them."""

import numpy as np
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.evaluation.bag import BagReader
from humanoid_control.mocap import load_body_points, load_clip


def fault(name, right):
    return pytest.mark.fault(name, right)


def height(points, name):
    return points.positions[:, list(points.names).index(name), 2]


@fault("B01", "push-ups: head 0.2 to 0.5 m; lies down: head 1.6 m, then below 0.4 m; stands: 1.57 m")
def test_up_is_that_of_the_format(folder, result):
    pushups, lies, stands = (load_body_points(folder / f"{n}.bvh") for n in ("pushups", "lies_down", "stands"))
    head, hip, down = np.median(height(pushups, "head")), np.median(height(pushups, "l_hip")), height(lies, "head")
    control = np.median(height(stands, "head"))
    result("push-ups: head", head, "hip", hip, "; lies down:", down[0], "then", down[-1], "; stands:", control)
    assert 0.2 < head < 0.5 and 0.2 < hip < 0.45
    assert 1.5 < down[0] < 1.7 and down[-1] < 0.4 and control == pytest.approx(1.57, abs=0.01)


@fault("B02", "66,000 frames at 100 Hz in both")
def test_a_full_counter_is_not_the_number_of_frames(folder, result):
    clips = [load_clip(folder / f"{n}.zip") for n in ("a_end_field", "b_frames_real")]
    result(*[f"{c.n_frames} frames at {c.rate:g} Hz;" for c in clips])
    assert [(c.n_frames, c.rate) for c in clips] == [(66000, 100.0)] * 2


@fault("B03", "240 frames at 60 Hz; dropped frames: the end at 4.07 s, reported; uneven steps: reported")
def test_the_time_column_is_the_time(folder, result):
    names = ("whole", "datarate_30_times_60", "eight_frames_dropped", "uneven_steps")
    whole, stated, dropped, uneven = (load_clip(folder / f"{n}.trc") for n in names)
    end = (dropped.n_frames - 1) / dropped.rate
    result(f"{stated.n_frames} frames at {stated.rate:.4g} Hz; end {end:.2f} s: {dropped.warnings}; {uneven.warnings}")
    assert whole.rate == 100.0 and not whole.warnings
    assert stated.n_frames == 240 and stated.rate == pytest.approx(60.0, rel=1e-3)
    assert end == pytest.approx(4.07, abs=0.02) and "1.9" in str(dropped.warnings)
    assert uneven.warnings


@fault("B05", "80 frames at 100 Hz, 18 markers, head at 1.65 m in all four")
def test_the_table_of_trajectories_is_found_among_others(folder, result):
    names = ("a_trajectories_only", "b_model_outputs_first", "c_devices_first", "d_trajectories_first")
    clips = [load_clip(folder / f"{n}.csv") for n in names]
    heads = [float(np.nanmax(c.positions[..., 2])) for c in clips]
    result(
        *[f"{c.n_frames} x {c.rate:g} Hz x {len(c.labels)}, top {h:.3f} m;" for c, h in zip(clips, heads, strict=True)]
    )
    assert all((c.n_frames, c.rate, len(c.labels)) == (80, 100.0, 18) for c in clips)
    assert heads == pytest.approx([1.65] * 4, abs=0.15)
    assert all(np.array_equal(c.positions, clips[0].positions, equal_nan=True) for c in clips)


@fault("B21", "60 frames at 60 Hz, 18 markers in all; in the last file one marker is hidden in 4 rows")
def test_headers_of_trc_differ(folder, result):
    names = ("seven_keys", "column_numbers_from_5", "spaces", "row_without_trailing_tabs")
    clips = [load_clip(folder / f"{n}.trc") for n in names]
    hidden = int(np.isnan(clips[3].positions).any(-1).sum())
    result(*[f"{c.n_frames} x {c.rate:g} Hz x {len(c.labels)};" for c in clips], f"{hidden} hidden")
    assert all((c.n_frames, c.rate, len(c.labels)) == (60, 60.0, 18) for c in clips) and hidden == 4


@fault("B26", "59 or 60 frames with a warning; the control without one")
def test_one_row_more_than_stated(folder, result):
    more, good, cut = (load_clip(folder / f"{n}.bvh") for n in ("one_row_more", "good", "no_newline_at_end"))
    extra, *others = ([w for w in c.warnings if "unit" not in w] for c in (more, good, cut))
    result(f"{more.n_frames} frames, {extra}; control {good.n_frames}, {others[0]}")
    assert more.n_frames in (59, 60) and extra and others == [[], []]
    assert good.n_frames == cut.n_frames and np.array_equal(good.positions, cut.positions)


@fault("B27", "240 frames at 120 Hz, as the user says")
def test_a_rate_of_the_user_goes_before_that_of_the_file(folder, result, humanoid):
    clip = load_clip(folder / "says_24_is_120.bvh", 120)
    code, out, errors = humanoid("clip", folder / "says_24_is_120.bvh", "--rate", 120)
    result(f"{clip.n_frames} frames at {clip.rate:g} Hz; the command ends with {code}")
    assert (clip.n_frames, clip.rate, code) == (240, 120.0, 0), errors
    assert "120" in out


@fault("B37", "whole: 60 messages; no footer: 60 with a warning, or the way to repair it; cut chunk: rejected")
def test_a_bag_whose_recorder_died(folder, result, caplog, capsys):
    found = []
    for name in ("whole", "no_footer", "cut_half"):
        try:
            found.append(len(list(BagReader(folder / f"{name}.mcap").raw())))
        except HumanoidError as e:
            found.append(str(e).replace(f"{folder}/", ""))
    said = capsys.readouterr().err + caplog.text
    result(f"{found}")
    assert found[:2] == [60, 60] and "mcap recover" in str(found[2]) and "did not finish" in said


def step_keys(path):
    """Times [s] of the keys of a glTF file's first sampler with steps."""
    import base64
    import json

    content = json.loads(path.read_text())
    sampler = next(s for s in content["animations"][0]["samplers"] if s.get("interpolation") == "STEP")
    accessor = content["accessors"][sampler["input"]]
    view = content["bufferViews"][accessor["bufferView"]]
    data = base64.b64decode(content["buffers"][view["buffer"]]["uri"].split(",", 1)[1])
    begin = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
    return np.frombuffer(data[begin : begin + 4 * accessor["count"]], "<f4")


@fault("B46", "upper arm at -70 + 20 sin 3t deg in all (steps hold the last key); bone 0.28 m; d: the take of 5 s")
def test_gltf_animations(folder, result):
    worst, others = {}, []
    for path in sorted(folder.glob("*.gltf")):
        clip = load_clip(path)
        arm, elbow, hip, foot = (
            clip.positions[:, clip.labels.index(n)] for n in ("LeftArm", "LeftForeArm", "LeftUpLeg", "LeftFoot")
        )
        bone = elbow - arm
        angle = np.degrees(np.arctan2(bone[:, 1], np.hypot(bone[:, 0], bone[:, 2])))
        t = clip.start + np.arange(len(bone)) / clip.rate
        if "h_step" in path.name:
            keys = step_keys(path)
            t = keys[np.searchsorted(keys, t + 1e-6, side="right") - 1]
        worst[path.stem[0]] = float(np.abs(angle - (-70 + 20 * np.sin(3 * t))).max())
        others.append(np.ptp(np.linalg.norm(bone, axis=1)) + abs(np.linalg.norm(bone[0]) - 0.28))
        assert hip[0, 1] - foot[0, 1] == pytest.approx(0.83, abs=1e-3), path.name
        if path.name.startswith("d_"):
            assert (clip.n_frames - 1) / clip.rate == pytest.approx(5.0, abs=0.05)
    result("worst [deg]:", *[f"{k} {v:.2f}" for k, v in worst.items()])
    assert len(worst) == 9 and max(others) < 1e-3
    assert worst.pop("j") < 1.0 and max(worst.values()) < 0.05


@fault("B49", "said in mirrored and swapped files, not in good ones")
def test_mirrored_axes_and_swapped_sides_are_said(folder, result):
    files = ("good.trc", "good.bvh", "mirrored.trc", "sides_swapped.trc", "mirrored.bvh")
    said = {f: any("backward" in w for w in load_body_points(folder / f).warnings) for f in files}
    result(*[f"{f} {'said' if s else 'silent'};" for f, s in said.items()])
    assert [said[f] for f in files] == [False, False, True, True, True]


ORDERS = ("gmr.npz", "protomotions.npz", "beyondmimic.csv", "mujoco.npz", "keyframes.xml")


@fault("B50", "turns from 0 to 120 deg; MuJoCo's order of joints; velocities integrate; x y z w or w x y z by format")
def test_exports_for_other_programs(folder, result, humanoid, tmp_path):
    import subprocess
    import sys

    from test.outside.conftest import with_package

    pytest.importorskip("mujoco")
    for name in ORDERS:
        given = ("--whole-body", "--format", name.split(".")[0], "-o", name)
        code, _, errors = humanoid("retarget", folder / "turns_120.trc", "--robot", "hrp2", *given)
        assert code == 0, errors
    np.savez(tmp_path / "own.npz", unused=1)
    command = [sys.executable, str(folder / "inter.py")]
    done = subprocess.run(command, cwd=tmp_path, env=with_package(), capture_output=True, text=True, timeout=300)
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    result(*done.stdout.splitlines()[:6])
    assert "order same as MuJoCo's: True" in done.stdout, done.stderr[-300:]
    numbers = [float(x) for key in ("beyondmimic:", "gmr:", "proto:") for x in lines[key].split() if "e-" in x]
    assert numbers and max(numbers) < 1e-8 and float(lines["local_body_pos"]) < 1e-12
    begin, end = (float(x) for x in lines["yaw"].split(" (")[0].split("->"))
    assert abs(begin) < 3 and end == pytest.approx(120, abs=3)
