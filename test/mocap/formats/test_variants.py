"""BVH whose root moves in another unit than its bones, and TRC and BVH as other programs and editors leave them."""

import re

import numpy as np
import pytest

from humanoid_control.mocap import load_clip
from humanoid_control.mocap.formats.bvh import joint_positions, parse_hierarchy, parse_motion, root_factor

UNITS = (100.0, 0.01, 1000.0, 0.001, 39.37)


def scaled_root(text, factor):
    """A BVH text whose root's position channels, the first three, are so many times as large."""
    head, dt, rows = re.split(r"(?im)^(\s*Frame Time:.*\n)", text, maxsplit=1)
    out = []
    for row in rows.strip().splitlines():
        words = row.split()
        out.append(" ".join([*(f"{factor * float(w):.9g}" for w in words[:3]), *words[3:]]))
    return head + dt + "\n".join(out) + "\n"


def parts(path):
    text = path.read_text()
    motion = re.search(r"(?m)^\s*MOTION\s*$", text)
    joints = parse_hierarchy(text[: motion.start()], "made")
    return joints, parse_motion(text, sum(len(j.channels) for j in joints), "made", motion.end())[1]


@pytest.mark.parametrize("name", ["02_01", "07_01"])
@pytest.mark.parametrize("factor", UNITS)
def test_a_root_in_another_unit_than_the_bones_is_brought_to_theirs(mocap, tmp_path, name, factor):
    path = mocap(f"cmu_bvh/{name}.bvh")
    right, wrong = load_clip(path), tmp_path / "wrong.bvh"
    wrong.write_text(scaled_root(path.read_text(), factor))
    clip = load_clip(wrong)
    note = next(w for w in clip.warnings if "another unit" in w)
    assert f"multiplied by {1 / factor:.4g}" in note
    assert np.allclose(clip.positions, right.positions, atol=2e-3)
    assert not any("another unit" in w for w in right.warnings)


def test_rotations_in_radians_are_asked_about(mocap, tmp_path):
    path = mocap("cmu_bvh/07_01.bvh")
    head, dt, rows = re.split(r"(?im)^(\s*Frame Time:.*\n)", path.read_text(), maxsplit=1)
    values = np.array([[float(w) for w in row.split()] for row in rows.strip().splitlines()])
    values[:, 3:] = np.radians(values[:, 3:])  # but for the root, all channels are rotations
    wrong = tmp_path / "radians.bvh"
    wrong.write_text(head + dt + "\n".join(" ".join(f"{x:.6f}" for x in row) for row in values) + "\n")
    assert any("is this one in radians?" in w for w in load_clip(wrong).warnings)
    assert not any("radians" in w for w in load_clip(path).warnings)


@pytest.mark.parametrize("name", ["02_01", "02_05", "05_02", "07_01"])
def test_a_root_in_the_unit_of_the_bones_is_left_alone_and_another_is_noticed(mocap, name):
    joints, values = parts(mocap(f"cmu_bvh/{name}.bvh"))
    assert root_factor(joints, joint_positions(joints, values))[0] == 1.0
    for factor in UNITS:
        moved = values.copy()
        moved[:, :3] *= factor
        assert root_factor(joints, joint_positions(joints, moved))[0] == pytest.approx(1 / factor)
    still = values.copy()
    still[:, :3] = still[0, :3]  # on the spot, as on a treadmill
    assert root_factor(joints, joint_positions(joints, still))[0] == 1.0


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("\n", "\r").encode(),
        lambda t: t.encode("utf-16"),
        lambda t: "\n".join(x.lower() if "OFFSET" in x or "CHANNELS" in x else x for x in t.splitlines()).encode(),
    ],
)
def test_bvh_of_other_editors_is_the_same_clip(mocap, tmp_path, change):
    path = mocap("cmu_bvh/02_01.bvh")
    other = tmp_path / "02_01.bvh"
    other.write_bytes(change(path.read_text()))
    assert np.array_equal(load_clip(other).positions, load_clip(path).positions)


def trc(times, decimal="."):
    x = np.random.default_rng(2).normal(0, 0.4, (len(times), 3, 3)) + [[[0, 0, 1.0]]]
    head = ["PathFileType\t4\t(X/Y/Z)\ta.trc", "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits"]
    head += [f"100\t100\t{len(times)}\t3\tm", "Frame#\tTime\ta\t\t\tb\t\t\tc\t\t", "\t\t" + "\t".join(["X1"] * 9)]
    rows = ["\t".join([str(k + 1), f"{t:.4f}", *(f"{v:.5f}" for v in x[k].ravel())]) for k, t in enumerate(times)]
    return "\n".join([*head, *(row.replace(".", decimal) for row in rows)]) + "\n"


T = np.arange(50) / 100


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (trc(T * 1000), "counts milliseconds"),
        (trc(T * 100), "counts frames"),
        (trc(T, ","), ""),
        ("\n" + trc(T), ""),
    ],
)
def test_times_and_numbers_of_a_trc_file_are_understood(tmp_path, text, words):
    path = tmp_path / "a.trc"
    path.write_text(text)
    clip = load_clip(path, unit="m")
    assert clip.rate == 100 and clip.duration == pytest.approx(0.49) and words in " ".join(clip.warnings)
    path.write_text(trc(T))
    assert np.allclose(clip.positions, load_clip(path, unit="m").positions)


def test_rows_that_are_not_in_the_order_of_their_times_are_sorted(tmp_path):
    path = tmp_path / "a.trc"
    path.write_text(trc(T))
    right, lines = load_clip(path, unit="m").positions, trc(T).splitlines()
    path.write_text("\n".join([*lines[:5], *lines[:4:-1]]))
    clip = load_clip(path, unit="m")
    assert np.array_equal(clip.positions, right) and "not sorted by time" in clip.warnings[0]
    path.write_text("\n".join([*lines[:20], lines[19], *lines[20:]]))
    clip = load_clip(path, unit="m")
    assert np.array_equal(clip.positions, right) and "1 row(s) repeat the time of the previous row" in clip.warnings[0]
