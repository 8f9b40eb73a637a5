"""glTF and FBX: what Assimp writes of a BVH file comes back; keys against SciPy; characters as people have them."""

from __future__ import annotations

import base64
import json
import shutil
import struct
import subprocess

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation, Slerp

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_body_points, load_clip
from humanoid_control.mocap.formats import fbx

RNG = np.random.default_rng(2)


class Gltf:
    """A small document: a chain of joints, moved by keys."""

    def __init__(self):
        self.numbers = b""
        moves = [{"name": "move", "channels": [], "samplers": []}]
        self.json = {"asset": {"version": "2.0"}, "nodes": [], "bufferViews": [], "accessors": []}
        self.json |= {"animations": moves, "skins": [{"joints": []}]}

    def table(self, array, kind="<f4", normalized=False):
        array = np.ascontiguousarray(array, kind)
        width = 1 if array.ndim == 1 else array.shape[1]
        self.json["bufferViews"].append({"buffer": 0, "byteOffset": len(self.numbers), "byteLength": array.nbytes})
        codes = {"<f4": 5126, "<i2": 5122, "i1": 5120}
        self.json["accessors"].append(
            {"bufferView": len(self.json["bufferViews"]) - 1, "componentType": codes[kind], "count": len(array),
             "type": {1: "SCALAR", 3: "VEC3", 4: "VEC4"}[width], "normalized": normalized}
        )  # fmt: skip
        self.numbers += array.tobytes() + b"\0" * (-array.nbytes % 4)
        return len(self.json["accessors"]) - 1

    def node(self, name, parent=None, joint=True, **more):
        self.json["nodes"].append({"name": name, **more})
        index = len(self.json["nodes"]) - 1
        if parent is not None:
            self.json["nodes"][parent].setdefault("children", []).append(index)
        if joint:
            self.json["skins"][0]["joints"].append(index)
        return index

    def keys(self, node, path, times, values, how="LINEAR", **more):
        animation = self.json["animations"][0]
        animation["samplers"].append(
            {"input": self.table(times), "output": self.table(values, **more), "interpolation": how}
        )
        target = {"node": node, "path": path}
        animation["channels"].append({"sampler": len(animation["samplers"]) - 1, "target": target})

    def glb(self):
        self.json["buffers"] = [{"byteLength": len(self.numbers)}]
        text = json.dumps(self.json).encode()
        text += b" " * (-len(text) % 4)
        chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
        chunks += struct.pack("<II", len(self.numbers), 0x004E4942) + self.numbers
        return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks

    def gltf(self, uri):
        self.json["buffers"] = [{"byteLength": len(self.numbers), "uri": uri}]
        return json.dumps(self.json).encode()


TIMES = np.arange(31) / 30.0
TURNS = Rotation.from_rotvec(np.cumsum(RNG.normal(0, 0.1, (31, 3)), axis=0))


def person(how="LINEAR"):
    """A stick of ankle, hip and head, below a scene that is turned and scaled."""
    g = Gltf()
    turned = Rotation.from_euler("x", -90, degrees=True).as_quat().tolist()
    scene = g.node("scene", joint=False, rotation=turned, scale=[0.01, 0.01, 0.01], translation=[1, 2, 3])
    hip = g.node("Hips", scene, translation=[0, 0, 90.0])
    knee = g.node("Knee", hip, translation=[0, 0, -45.0])
    g.node("Foot", knee, translation=[0, 0, -45.0])
    g.node("Head", hip, translation=[0, 0, 60.0])
    g.keys(hip, "rotation", TIMES, TURNS.as_quat(), how)
    return g


def read(tmp_path, data, name="x.glb"):
    (tmp_path / name).write_bytes(data)
    return load_clip(tmp_path / name)


def test_a_chain_below_a_turned_and_scaled_scene(tmp_path):
    clip = read(tmp_path, person().glb())
    assert clip.rate == 30
    assert clip.labels == ("Hips", "Knee", "Head", "Foot")
    assert clip.up == "+y", "as the format says"
    scene = Rotation.from_euler("x", -90, degrees=True)
    for label, place in (("Foot", [0, 0, -0.9]), ("Head", [0, 0, 0.6])):
        expected = [1, 2, 3] + scene.apply([0, 0, 0.9] + TURNS.apply(place))
        np.testing.assert_allclose(clip.marker(label), expected, atol=1e-6)


def test_keys_between_frames_are_those_of_scipy(tmp_path):
    coarse = np.array([0.0, 0.3, 0.35, 1.0])
    quats = Rotation.from_rotvec(RNG.normal(0, 1.0, (4, 3)))
    values, slopes = RNG.normal(0, 2, (4, 3)) - [0, 0, 45], RNG.normal(0, 5, (4, 3))
    g = person()
    knee = 2
    g.keys(knee, "translation", coarse, np.stack([slopes, values, slopes], axis=1).reshape(-1, 3), "CUBICSPLINE")
    g.keys(knee, "rotation", coarse, quats.as_quat() * [[1], [-1], [1], [-1]])
    clip = read(tmp_path, g.glb())
    hip = Rotation.from_euler("x", -90, degrees=True) * TURNS
    spline = CubicHermiteSpline(coarse, values, slopes)(TIMES)
    knees = [1, 2, 3] + Rotation.from_euler("x", -90, degrees=True).apply([0, 0, 0.9]) + 0.01 * hip.apply(spline)
    np.testing.assert_allclose(clip.marker("Knee"), knees, atol=1e-5)
    bent = (hip * Slerp(coarse, quats)(TIMES)).apply([0, 0, -0.45])
    np.testing.assert_allclose(clip.marker("Foot"), knees + bent, atol=1e-5)


def test_steps_hold_until_the_next_key(tmp_path):
    g = person()
    g.keys(2, "translation", [0.0, 0.5, 1.0], [[0, 0, -45], [0, 0, -40], [0, 0, -30]], "STEP")
    clip = read(tmp_path, g.glb())
    length = np.linalg.norm(clip.marker("Knee") - clip.marker("Hips"), axis=1)
    np.testing.assert_allclose(length, np.repeat([0.45, 0.40, 0.30], [15, 15, 1]), atol=1e-6)


def test_whole_numbers_buffers_beside_and_buffers_inside(tmp_path):
    reference = read(tmp_path, person().glb())
    g = person()
    inside = g.gltf("data:application/octet-stream;base64," + base64.b64encode(g.numbers).decode())
    np.testing.assert_array_equal(read(tmp_path, inside, "in.gltf").positions, reference.positions)
    (tmp_path / "all numbers.bin").write_bytes(g.numbers)
    np.testing.assert_array_equal(read(tmp_path, g.gltf("all%20numbers.bin"), "a.gltf").positions, reference.positions)
    (tmp_path / "all numbers.bin").unlink()
    with pytest.raises(ClipError, match=r"its numbers are in all%20numbers.bin: put that file into the same folder"):
        load_clip(tmp_path / "a.gltf")
    g = person()
    g.json["animations"][0] = {"name": "move", "channels": [], "samplers": []}
    g.keys(1, "rotation", TIMES, np.round(TURNS.as_quat() * 32767), kind="<i2", normalized=True)
    np.testing.assert_allclose(read(tmp_path, g.glb()).positions, reference.positions, atol=1e-4)


def test_the_animation_is_the_longest_or_the_one_that_is_named(tmp_path):
    g = person()
    short = Gltf()
    g.json["animations"].append({"name": "short", "channels": [], "samplers": []})
    g.json["animations"].reverse()
    g.keys(1, "rotation", TIMES[:10], TURNS[:10].as_quat())
    del short
    clip = read(tmp_path, g.glb())
    assert clip.n_frames == 31
    assert any("'move'; the others are short" in w for w in clip.warnings)
    assert load_clip(f"{tmp_path / 'x.glb'}:short").n_frames == 10
    with pytest.raises(ClipError, match="no animation 'shirt': did you mean short"):
        load_clip(f"{tmp_path / 'x.glb'}:shirt")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.json.pop("animations"), "contains no animation"),
        (lambda g: g.json["asset"].update(version="1.0"), "is not glTF 2"),
        (lambda g: g.json.update(extensionsRequired=["EXT_meshopt_compression"]), "gltf-transform"),
        (lambda g: g.json["accessors"][0].update(sparse={}), "sparse"),
        (lambda g: g.json["accessors"][0].update(count=10**9), "ends within its numbers"),
        (lambda g: g.json["nodes"][3].update(children=[0]), "their own ancestors"),
        (lambda g: g.json["animations"][0]["channels"][0]["target"].update(path="weights"), "does not move any node"),
        (lambda g: g.json.update(nodes=[]), "is damaged"),
    ],
)
def test_what_is_not_read_is_said(tmp_path, change, message):
    g = person()
    change(g)
    with pytest.raises(ClipError, match=message) as caught:
        read(tmp_path, g.glb())
    assert str(caught.value).isprintable()


def test_damaged_files_are_refused_in_one_line(tmp_path):
    data = person().glb()
    for _ in range(250):
        broken = bytearray(data[: RNG.integers(1, len(data))] if RNG.random() < 0.3 else data)
        for _ in range(RNG.integers(1, 6)):
            broken[RNG.integers(len(broken))] = RNG.integers(256)
        try:
            read(tmp_path, bytes(broken))
        except ClipError as error:
            assert str(error).isprintable()


# --- Other programs


@pytest.fixture(scope="session")
def assimp():
    """The command of Assimp."""
    command = fbx.assimp_command()
    if command is None:
        pytest.skip("needs the command assimp, which the wheels of coal bring along")
    return command


@pytest.mark.parametrize("ending", ["glb", "gltf"])
def test_what_assimp_makes_of_a_bvh_file_is_the_same_motion(mocap, assimp, tmp_path, ending):
    kind = {"glb": "glb2", "gltf": "gltf2"}[ending]
    path = tmp_path / f"walk.{ending}"
    source = mocap("cmu_bvh/07_01.bvh")
    subprocess.run([assimp, "export", source, path, f"-f{kind}"], check=True, stdout=subprocess.DEVNULL)
    original, made = load_clip(source, unit="inch"), load_clip(path, unit="inch")
    assert made.rate == pytest.approx(original.rate, rel=0.01)
    shared = [label for label in original.labels if label in made.labels]
    assert len(shared) >= 27
    made, original = made.select(shared), original.select(shared)
    last = min(made.n_frames, original.n_frames)
    off = np.linalg.norm(made.positions[-last:] - original.positions[-last:], axis=2)
    assert off.max() < 1e-3


@pytest.mark.parametrize(
    ("name", "duration"),
    [("Samba_Dancing.fbx", 19.8), ("mixamo.fbx", 16.83), ("Chapa-Giratoria.fbx", 3.0), ("Michelle.glb", 18.2),
     ("Xbot.glb:walk", 0.98), ("Soldier.glb:Run", 0.67)],
)  # fmt: skip
def test_characters_of_mixamo_are_people(recording, name, duration):
    file, _, part = name.partition(":")
    path = recording(f"scenes/{file}")
    points = load_body_points(f"{path}:{part}" if part else path)
    assert points.duration == pytest.approx(duration, abs=0.05)
    assert load_clip(path).up == ("" if file.endswith(".fbx") else "+y"), "FBX may have any axes"
    assert {"l_toe", "r_toe", "l_ankle", "head"} <= set(points.names)
    thigh = np.linalg.norm(points.point("l_hip") - points.point("l_knee"), axis=1)
    assert np.ptp(thigh) < 1e-2
    assert 0.3 < thigh.mean() < 0.5
    assert not any("backward" in w for w in points.warnings)


def test_without_assimp_the_way_on_is_told(tmp_path, monkeypatch):
    (tmp_path / "a.fbx").write_bytes(b"Kaydara FBX Binary  \x00")
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(ClipError, match=r"not installed: convert it: blender -b --python-expr .*a.glb"):
        load_clip(tmp_path / "a.fbx")


@pytest.mark.parametrize("content", [b"Kaydara FBX Binary  \x00\x1a\x00", b"junk", b"; FBXHeaderExtension: {"])
def test_a_file_that_is_no_fbx_is_refused(assimp, tmp_path, content):
    (tmp_path / "a.fbx").write_bytes(content)
    with pytest.raises(ClipError, match=r"not an FBX file|Assimp cannot read it|contains no|damaged") as caught:
        load_clip(tmp_path / "a.fbx")
    assert str(caught.value).isprintable()
