"""A clip in an archive or a folder: the only one is taken, one of several is named, what is wrong is said."""

from __future__ import annotations

import shutil
import zipfile

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_clip
from test.mocap.formats.test_bvh import bvh, still

WALK = [[0, 95 + k, 0] + [k] * 9 for k in range(4)]


@pytest.fixture
def walk(tmp_path):
    path = tmp_path / "walk.bvh"
    path.write_bytes(bvh(WALK))
    return path


def pack(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/"), data)
    return path


def test_the_only_clip_of_an_archive_is_taken(tmp_path, walk):
    path = pack(
        tmp_path / "clips.zip", **{"set/walk.bvh": walk.read_bytes(), "readme.txt": "x", "__MACOSX/._walk.bvh": b"x"}
    )
    clip = load_clip(path)
    np.testing.assert_array_equal(clip.positions, load_clip(walk).positions)
    assert clip.name == "walk"
    assert clip.source.endswith("clips.zip:set/walk.bvh")


def test_one_of_several_is_named_by_its_path_or_its_name(tmp_path, walk):
    path = pack(tmp_path / "clips.zip", **{"a/walk.bvh": walk.read_bytes(), "b/rest.bvh": bvh(still())})
    with pytest.raises(
        ClipError, match=r"contains 2 clips: name one, such as .*clips.zip:a/walk.bvh \(of a/walk.bvh, b/rest.bvh\)"
    ):
        load_clip(path)
    for name in ("a/walk.bvh", "walk.bvh"):
        np.testing.assert_array_equal(load_clip(f"{path}:{name}").positions, load_clip(walk).positions)
    with pytest.raises(ClipError, match=r"has no member 'wolk.bvh': did you mean a/walk.bvh"):
        load_clip(f"{path}:wolk.bvh")


def test_a_skeleton_in_the_same_archive_belongs_to_its_motion(mocap, tmp_path):
    motion = mocap("cmu_asf/11_01.amc")
    path = pack(
        tmp_path / "cmu.zip",
        **{"11/11_01.amc": motion.read_bytes(), "11/11.asf": motion.with_name("11.asf").read_bytes()},
    )
    np.testing.assert_array_equal(load_clip(path).positions, load_clip(motion).positions)
    path = pack(tmp_path / "lost.zip", **{"11_01.amc": motion.read_bytes()})
    with pytest.raises(ClipError, match=r"lost.zip:11_01.amc: skeleton not found: put 11.asf"):
        load_clip(path)


def test_the_only_clip_of_a_folder_is_taken(tmp_path, walk):
    folder = tmp_path / "clips"
    folder.mkdir()
    shutil.copy(walk, folder)
    (folder / "notes.txt").write_text("x")
    np.testing.assert_array_equal(load_clip(folder).positions, load_clip(walk).positions)
    shutil.copy(walk, folder / "again.bvh")
    with pytest.raises(ClipError, match=r"contains 2 clips: name one, such as .*clips/again.bvh"):
        load_clip(folder)


@pytest.mark.parametrize("kind", ["empty", "cut", "no_clip", "locked", "damaged", "no_archive"])
def test_archives_that_give_no_clip(tmp_path, walk, kind):
    path = pack(tmp_path / "a.zip", **{"walk.bvh": walk.read_bytes()})
    whole = path.read_bytes()
    if kind == "empty":
        pack(path)
    elif kind == "no_clip":
        pack(path, readme=b"x")
    elif kind == "cut":
        path.write_bytes(whole[:-40])
    elif kind == "damaged":
        path.write_bytes(whole[:60] + bytes(40) + whole[100:])
    elif kind == "locked":
        flags = bytearray(whole)
        for at in (whole.find(b"PK\x03\x04") + 6, whole.find(b"PK\x01\x02") + 8):
            flags[at] |= 1
        path.write_bytes(bytes(flags))
    else:
        path.write_bytes(b"no archive")
    expected = {"empty": "contains no clip", "no_clip": "contains no clip", "locked": "protected by a password",
                "damaged": "cannot be unpacked"}  # fmt: skip
    with pytest.raises(ClipError, match=expected.get(kind, "not a zip archive, or a damaged one")) as caught:
        load_clip(path)
    assert str(caught.value).isprintable()


def test_an_empty_member_is_called_empty(tmp_path):
    with pytest.raises(ClipError, match=r"a.zip:walk.bvh: is empty"):
        load_clip(pack(tmp_path / "a.zip", **{"walk.bvh": b""}))


def test_a_member_that_would_fill_the_memory_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("humanoid_control.mocap.formats.common.ALWAYS_ALLOWED", 100)
    with pytest.raises(ClipError, match="MiB of memory"):
        load_clip(pack(tmp_path / "a.zip", **{"walk.bvh": b"0" * 1_000_000}))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.dae", "convert it to glTF with Blender"),
        ("a.mvnx", "export BVH"),
        ("a.mat", "write its markers as TRC or C3D"),
        ("a.ndf", "export C3D from NDI First Principles"),
        ("a.mp4", "is a video"),
        ("a.asf", "name the .amc"),
    ],
)
def test_the_next_step_for_files_that_are_no_clips(tmp_path, name, message):
    (tmp_path / name).write_text("x")
    with pytest.raises(ClipError, match=message):
        load_clip(tmp_path / name)
