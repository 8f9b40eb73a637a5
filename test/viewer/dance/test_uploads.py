"""Files that are dropped on a page: told apart, kept in a place of their own, refused in one line."""

import io
import zipfile

import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.viewer.dance import uploads as uploads_module
from humanoid_control.viewer.dance.uploads import CLIP, ROBOT, Uploads, plain_name


@pytest.fixture
def uploads():
    made = Uploads()
    yield made
    made.close()
    assert not made.folder.exists()


def archive(**files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        for name, content in files.items():
            z.writestr(name, content)
    return data.getvalue()


def test_clips_and_robots_are_told_apart(uploads):
    clip = uploads.keep("Walk (1).BVH", b"HIERARCHY")
    assert (clip.kind, clip.title) == (CLIP, "Walk (1).BVH") and clip.path.read_bytes() == b"HIERARCHY"
    assert uploads.keep("r.urdf", b'<?xml version="1.0"?><robot name="r"/>').kind == ROBOT
    assert uploads.keep("r.xml", b"<mujoco/>").kind == ROBOT
    again = uploads.keep("Walk (1).BVH", b"other")
    assert again.path != clip.path and clip.path.read_bytes() == b"HIERARCHY"


def test_an_archive_is_a_robot_where_one_is_in_it(uploads):
    robot = uploads.keep(
        "g1.zip",
        archive(**{
            "g1/meshes/a.stl": "x", "g1/scene/part.xml": "<mujoco/>", "g1/g1.xml": "<mujoco><worldbody/></mujoco>",
            "g1/notes.xml": "<notes/>", "g1/short.xml": "<mujoco/>",
        }),
    )  # fmt: skip
    assert robot.kind == ROBOT and robot.title == "g1: g1.xml"
    assert (robot.path.parent / "meshes" / "a.stl").is_file(), "meshes lie where its description says"
    assert uploads.keep("clips.zip", archive(**{"walk.bvh": "HIERARCHY"})).kind == CLIP


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("notes.txt", b"hello", "neither a clip nor a robot"),
        ("empty.bvh", b"", "empty"),
        ("r.urdf", b"<html></html>", "neither a URDF"),
        ("r.zip", b"PK not really", "not a readable zip"),
        ("r.zip", archive(**{"a.xml": "<notes/>"}), "no URDF or MJCF"),
        ("", b"x", "neither a clip nor a robot"),
    ],
    ids=["text", "empty", "html", "no archive", "another's archive", "nameless"],
)
def test_what_is_neither_is_refused_in_one_line(uploads, name, content, says):
    with pytest.raises(HumanoidError, match=says) as refusal:
        uploads.keep(name, content)
    assert len(str(refusal.value).splitlines()) == 1


def test_too_much_is_refused(uploads, monkeypatch):
    monkeypatch.setattr(uploads_module, "LARGEST", 10)
    with pytest.raises(HumanoidError, match="too large"):
        uploads.keep("a.bvh", b"x" * 11)
    monkeypatch.setattr(uploads_module, "LARGEST", 1000)
    monkeypatch.setattr(uploads_module, "MOST_UNPACKED", 10)
    with pytest.raises(HumanoidError, match="too large"):
        uploads.keep("a.zip", archive(**{"a.urdf": "<robot/>" + " " * 20}))


def test_no_name_leads_out_of_the_folder(uploads):
    for name in ("../../etc/passwd.bvh", "..\\..\\x.bvh", "/tmp/x.bvh", "a/../../b.bvh", "\0.bvh", "x\n.bvh", "...bvh"):
        kept = uploads.keep(name, b"x").path
        assert uploads.folder in kept.resolve().parents and kept.is_file()
    escaping = archive(**{"../../../evil.urdf": "<robot/>", "in.urdf": "<robot/>"})
    kept = uploads.keep("a.zip", escaping).path
    assert kept.name == "in.urdf" and not list(uploads.folder.parent.glob("evil.urdf"))
    assert plain_name("C:\\clips\\Ü walk.bvh") == "Ü walk.bvh"
    assert len(plain_name("x" * 500 + ".bvh")) < 100
