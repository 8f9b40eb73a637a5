"""Good recordings of motion, and the marker sets that say what is what in them; and what reads them."""

from __future__ import annotations

import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from humanoid_control.mocap import clean, find_body_points, load_clip
from humanoid_control.mocap.marker_sets import find_marker_set
from test.good_files.kinds import FileKind, write

MARKER_SET = """about: a set
landmarks:
  l_asis: [LASI]
  r_asis: [RASI]
  mid_psis: [[LPSI, RPSI], [SACR]]
points:
  l_hip: {rule: hip_centre}
  r_hip: {rule: hip_centre}
  sternum: [CLAV]
  l_shoulder: [LSHO]
  r_shoulder: [RSHO]
  l_elbow: [LELB]
  r_elbow: [RELB]
  l_wrist: [[LWRA, LWRB], [LWRI]]
  r_wrist: [[RWRA, RWRB]]
unused: [[T10]]
"""
BODY = {
    "head": (0, 0, 1.7), "clavicle": (0.1, 0, 1.4), "LSHO": (0, 0.2, 1.45), "RSHO": (0, -0.2, 1.45),
    "LELB": (0, 0.25, 1.15), "RELB": (0, -0.25, 1.15), "LWRI": (0.1, 0.25, 0.9), "RWRI": (0.1, -0.25, 0.9),
    "LHIP": (0, 0.1, 0.9), "RHIP": (0, -0.1, 0.9), "LKNE": (0, 0.1, 0.5), "LANK": (0, 0.1, 0.1),
}  # fmt: skip
BONES = {
    "Hips": ("", (0, 0.9, 0)), "Head": ("Hips", (0, 0.7, 0)), "LeftArm": ("Hips", (0.2, 0.5, 0)),
    "LeftFoot": ("Hips", (0.1, -0.8, 0)), "RightFoot": ("Hips", (-0.1, -0.8, 0)),
}  # fmt: skip


def _body(frames: int = 6) -> np.ndarray:
    """Markers (T, M, 3) of a person who sways [m]."""
    at = np.array(list(BODY.values()), dtype=float)
    return at + 0.01 * np.arange(frames)[:, None, None]


def _c3d(folder: Path) -> None:
    """A C3D file of Intel reals: header, parameters, frames."""
    body = 1000 * _body()
    T, M, _ = body.shape

    def parameter(name: str, group: int, kind: int, dimensions: list[int], data: bytes) -> bytes:
        inside = struct.pack("<bB", kind, len(dimensions)) + bytes(dimensions) + data + b"\0"
        return struct.pack("<bb", len(name), group) + name.encode() + struct.pack("<H", len(inside) + 2) + inside

    labels = b"".join(name.encode().ljust(10) for name in BODY)
    section = struct.pack("<bb", 5, -1) + b"POINT" + struct.pack("<HB", 3, 0)
    section += parameter("USED", 1, 2, [], struct.pack("<h", M)) + parameter("RATE", 1, 4, [], struct.pack("<f", 100))
    section += parameter("FRAMES", 1, 2, [], struct.pack("<h", T)) + parameter("LABELS", 1, -1, [10, M], labels)
    section += parameter("UNITS", 1, -1, [2], b"mm") + b"\0\0"
    header = struct.pack("<BBHHHHHfHHf", 2, 0x50, M, 0, 1, T, 0, -1.0, 4, 0, 100.0)
    frames = np.concatenate([body, np.zeros((T, M, 1))], axis=2).astype("<f4").tobytes()
    parameters = bytes((1, 0x50, 2, 84)) + section
    (folder / "a.c3d").write_bytes(header.ljust(512, b"\0") + parameters.ljust(1024, b"\0") + frames)


def _trc(folder: Path) -> None:
    body = 1000 * _body()
    lines = ["PathFileType\t4\t(X/Y/Z)\ta.trc", "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits"]
    lines += [f"100\t100\t{len(body)}\t{len(BODY)}\tmm", "Frame#\tTime\t" + "\t\t\t".join(BODY), "\t\tX1\tY1\tZ1"]
    lines += [f"{k + 1}\t{k / 100}\t" + "\t".join(f"{v:.3f}" for v in row.ravel()) for k, row in enumerate(body)]
    write(folder, a__trc="\n".join(lines) + "\n")


def _csv(folder: Path) -> None:
    lines = ["# unit: m", "time," + ",".join(f"{name}_{a}" for name in BODY for a in "xyz")]
    lines += [f"{k / 50}," + ",".join(f"{v:.4f}" for v in row.ravel()) for k, row in enumerate(_body())]
    write(folder, a__csv="\n".join(lines) + "\n")


def _bvh(folder: Path) -> None:
    channels = "CHANNELS 3 Zrotation Xrotation Yrotation"
    lines = ["HIERARCHY", "ROOT Hips", "{", "OFFSET 0 90 0"]
    lines += ["CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation"]
    for name, (_, at) in list(BONES.items())[1:]:
        lines += [f"JOINT {name}", "{", "OFFSET " + " ".join(str(100 * v) for v in at), channels]
        lines += ["End Site", "{", "OFFSET 0 10 0", "}", "}"]
    lines += ["}", "MOTION", "Frames: 5", "Frame Time: 0.01"]
    lines += [" ".join(f"{k + j / 10:.2f}" for j in range(3 + 3 * len(BONES))) for k in range(5)]
    write(folder, a__bvh="\n".join(lines) + "\n")


def _asf_amc(folder: Path) -> None:
    lengths = {"spine": (0, 0.7, 0), "head": (0, 0.2, 0), "leg": (0, -0.8, 0), "foot": (0, 0, 0.1)}
    bones = "".join(
        f"  begin\n     id {k}\n     name {name}\n     direction {' '.join(map(str, at))}\n"
        f"     length {np.linalg.norm(at):.2f}\n     axis 0 0 20 XYZ\n    dof rx ry rz\n  end\n"
        for k, (name, at) in enumerate(lengths.items())
    )
    asf = f""":version 1.10
:units
  mass 1.0
  length 0.0254
  angle deg
:root
   order TX TY TZ RX RY RZ
   axis XYZ
   position 0 0 0
   orientation 0 0 0
:bonedata
{bones}:hierarchy
  begin
    root spine leg
    spine head
    leg foot
  end
"""
    frames = [f"{k}\nroot {k} 1 2 3 4 5\n" + "".join(f"{b} 1 {k} 3\n" for b in lengths) for k in range(1, 6)]
    write(folder, a__asf=asf, a__amc=":FULLY-SPECIFIED\n:DEGREES\n" + "".join(frames))


def _smpl(folder: Path) -> None:
    turns = 0.01 * np.arange(6 * 66, dtype=float).reshape(6, 66) % 0.3
    motion = {"poses": turns, "trans": 0.01 * np.ones((6, 3)), "betas": np.zeros(10), "fps": 30.0}
    np.savez(folder / "a.npz", **motion)
    (folder / "a.pkl").write_bytes(pickle.dumps({"person": motion}))


def _gltf(folder: Path) -> None:
    from test.mocap.formats.test_gltf import person

    (folder / "a.glb").write_bytes(person().glb())
    scene = person()
    (folder / "a.gltf").write_bytes(scene.gltf("numbers.bin"))
    (folder / "numbers.bin").write_bytes(scene.numbers)


def _archive(folder: Path) -> None:
    _bvh(folder)
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "a.bvh", "a.bvh")
    (folder / "a.bvh").unlink()


def use_clip(path: Path) -> None:
    clip = load_clip(path)
    if np.isinf(clip.positions).any() or not 0 < clip.rate < np.inf:
        raise AssertionError("a position or the rate of a clip that was taken is infinite")
    clip, _ = clean(clip)
    try:
        find_body_points(clip)
    except Exception as error:
        if "no marker set fits" not in str(error):
            raise


def _clip(make: Callable[[Path], None], *names: str) -> FileKind:
    return FileKind(make, names, names[-1], use_clip)


CLIP_KINDS: dict[str, FileKind] = {
    "marker set": FileKind(lambda f: write(f, a__yaml=MARKER_SET), ("a.yaml",), "a.yaml", find_marker_set),
    "c3d": _clip(_c3d, "a.c3d"),
    "trc": _clip(_trc, "a.trc"),
    "csv": _clip(_csv, "a.csv"),
    "bvh": _clip(_bvh, "a.bvh"),
    "asf": _clip(_asf_amc, "a.asf", "a.amc"),
    "smpl": _clip(_smpl, "a.npz"),
    "pickle": _clip(_smpl, "a.pkl"),
    "glb": _clip(_gltf, "a.glb"),
    "gltf": _clip(_gltf, "numbers.bin", "a.gltf"),
    "archive": _clip(_archive, "a.zip"),
}
