"""Small files that ask for much: memory of the process, or more memory than any recording takes."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import struct
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.human.forces.loads import read_loads
from humanoid_control.mocap import load_clip
from humanoid_control.mocap.formats.asf_amc import parse_amc
from humanoid_control.mocap.formats.bvh import parse_bvh
from humanoid_control.mocap.formats.c3d import parse_c3d
from humanoid_control.mocap.formats.csv import parse_csv
from humanoid_control.mocap.formats.npz import parse_npz
from humanoid_control.mocap.formats.pickled import load_pickle, load_tensors
from humanoid_control.mocap.formats.trc import parse_trc

# -------- pickles

RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
FLOATS = b"cnumpy\ndtype\nX\x02\x00\x00\x00f8K\x00K\x01\x87R"
FORGED = {
    "an array of objects over bytes": b"cnumpy\nndarray\nK\x01\x85X\x01\x00\x00\x00OC\x08AAAAAAAA\x87R.",
    "memory that nobody has written": b"cnumpy\nndarray\nM\x00\x10\x85R.",
    "NEWOBJ": b"cnumpy\nndarray\nM\x00\x10\x85\x81.",
    "a type with fields": FLOATS + b"(K\x03X\x01\x00\x00\x00<NNX\x01\x00\x00\x00aK\x08K\x08K?tb.",
    "a type of objects": b"cnumpy\ndtype\nX\x01\x00\x00\x00OK\x00K\x01\x87R.",
    "more numbers than bytes": RECONSTRUCT + b"(K\x01M\x00\x10\x85" + FLOATS + b"K\x00C\x08AAAAAAAAtb.",
    "a state that replaces the numbers": RECONSTRUCT + b"(K\x01K\x01\x85X\x01\x00\x00\x00OK\x00C\x08AAAAAAAAtb.",
    "a change of a function": b"c_codecs\nencode\n(N}X\x0c\x00\x00\x00__defaults__X\x01\x00\x00\x00aK\x01\x85st"[:-2]
    + b"stb.",
    "a table larger than the file": b"]r\xff\xff\xff\x0f.",
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_pickle_reads_no_memory_and_changes_no_function(case):
    with pytest.raises(ClipError, match=r"which arrays do not need|damaged pickle"):
        load_pickle(b"\x80\x03" + FORGED[case], "a.pkl")


def test_a_storage_and_a_dictionary_cannot_be_given_a_state():
    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
    for program in (
        storage + b"(K\x01K\x04\x85ctorch\nLongStorage\nK\x00C\x20" + bytes(32) + b"tb.",
        b"ccollections\nOrderedDict\n)R(N}X\x05\x00\x00\x00itemsK\x01stb.",
    ):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("a/data.pkl", b"\x80\x02" + program)
            archive.writestr("a/data/0", bytes(16))
        with pytest.raises(ClipError, match="which arrays do not need"):
            load_tensors(file.getvalue(), "a.pt")


def test_the_same_bytes_are_not_copied_many_times():
    again = [np.frombuffer(bytes(1000), "u1") for _ in range(3)]
    assert len(load_pickle(pickle.dumps(again, 4), "a.pkl")) == 3
    encoded = b"X\xe8\x03\x00\x00" + b"a" * 1000 + b"q\x000]q\x01"  # a text of 1,000 bytes, put away
    many = b"".join([b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86Ra" for _ in range(500)])
    with pytest.raises(ClipError, match="the same numbers many times"):
        load_pickle(b"\x80\x02" + encoded + many + b".", "a.pkl")


def test_texts_and_numbers_of_any_order_are_still_read():
    content = {
        "a": np.array(["wrist", "toe"]),
        "b": np.arange(4, dtype=">i4"),
        "c": np.array([b"xy"]),
        "d": np.float32(2),
    }
    for protocol in range(6):
        found = load_pickle(pickle.dumps(content, protocol), "a.pkl")
        for name, value in content.items():
            np.testing.assert_array_equal(found[name], value)
            assert np.asarray(found[name]).dtype.newbyteorder("=") == np.asarray(value).dtype.newbyteorder("=")


# -------- sizes


@pytest.fixture
def little_memory(monkeypatch):
    """A megabyte is allowed to every file, where it is 256 otherwise."""
    monkeypatch.setattr("humanoid_control.mocap.formats.common.ALWAYS_ALLOWED", 2**20)


def packed(member, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return file.getvalue()


def deep_bvh(joints, frames):
    hierarchy = "HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\nCHANNELS 1 Xposition\n"
    hierarchy += "".join(f"End Site\n{{\nOFFSET 0 {k} 0\n}}\n" for k in range(joints)) + "}\n"
    return (hierarchy + f"MOTION\nFrames: {frames}\nFrame Time: 0.01\n" + "1\n" * frames).encode()


def long_gltf(seconds, nodes):
    import base64

    data = np.array([0.0, seconds], "<f4").tobytes() + np.zeros((2, 3), "<f4").tobytes()
    return json.dumps(
        {
            "asset": {"version": "2.0"},
            "nodes": [{"name": f"j{k}", "children": [k + 1]} for k in range(nodes - 1)] + [{"name": "end"}],
            "skins": [{"joints": list(range(nodes))}],
            "buffers": [{"byteLength": 32, "uri": "data:;base64," + base64.b64encode(data).decode()}],
            "bufferViews": [
                {"buffer": 0, "byteLength": 8},
                {"buffer": 0, "byteOffset": 8, "byteLength": 24},
            ],
            "accessors": [
                {"bufferView": 0, "componentType": 5126, "type": "SCALAR", "count": 2},
                {"bufferView": 1, "componentType": 5126, "type": "VEC3", "count": 2},
            ],
            "animations": [
                {
                    "channels": [{"sampler": 0, "target": {"node": 0, "path": "translation"}}],
                    "samplers": [{"input": 0, "output": 1}],
                }
            ],
        }
    ).encode()


def bones(count, frames):
    skeleton = ":root\norder TX\n:bonedata\n" + "".join(
        f"begin\nname b{k}\ndirection 0 1 0\nlength 1\naxis 0 0 0 XYZ\nend\n" for k in range(count)
    )
    skeleton += ":hierarchy\nbegin\nroot " + " ".join(f"b{k}" for k in range(count)) + "\nend\n"
    return "".join(f"{k}\nroot 1\n" for k in range(frames)).encode(), skeleton.encode()


def test_a_small_file_that_would_fill_the_memory_is_refused(little_memory, tmp_path):
    zeros = io.BytesIO()
    np.save(zeros, np.zeros((1000, 1000)))
    motion, skeleton = bones(500, 2000)
    long = tmp_path / "a.gltf"
    long.write_bytes(long_gltf(3000.0, 30))
    for call in (
        lambda: load_tensors(packed("a/data.pkl", bytes(8_000_000)), "a.pt"),
        lambda: parse_npz(packed("poses.npy", zeros.getvalue()), "a.npz"),
        lambda: parse_bvh(deep_bvh(500, 5000), "a.bvh"),
        lambda: parse_amc(motion, "a.amc", skeleton, "a.asf"),
        lambda: load_clip(long),
    ):
        with pytest.raises(ClipError, match="MiB of memory"):
            call()


def test_more_points_than_any_recording_has_are_refused():
    header = "PathFileType\t4\nDataRate\tNumFrames\tUnits\n60\t1\tm\nFrame#\tTime\t" + "a\t\t\t" * 20_000
    for call in (
        lambda: parse_csv((",".join(f"{k}x,{k}y,{k}z" for k in range(20_000)) + "\n").encode(), "a.csv"),
        lambda: parse_trc((header + "\n\n1\t0\n").encode(), "a.trc"),
        lambda: parse_bvh(deep_bvh(20_000, 1), "a.bvh"),
    ):
        with pytest.raises(ClipError, match="the maximum is"):
            call()


def test_the_name_of_a_column_takes_no_time_that_grows_with_its_square():
    begin = time.process_time()
    with pytest.raises(ClipError, match="no marker columns"):
        parse_csv(("a" + " " * 100_000 + "b,c\n1,2\n").encode(), "a.csv")
    assert time.process_time() - begin < 1.0


TABLE = "PathFileType\t4\nDataRate\tNumFrames\tNumMarkers\tUnits\n100\t{}\t{}\tmm\nFrame#\tTime\ta\t\t\tb\n\n"
ROWS = "1\t0\t1\t2\t3\t4\t5\t6\n2\t0.01\t1\t2\t3\t4\t5\t6\n"
VICON = "Trajectories\n100\n,,a,,\nFrame,Sub Frame,X,Y,Z\n,,mm,mm,mm\n1,0,1,2,3\n2,0,1,2,3\n"
QUALISYS = "NO_OF_FRAMES\t{}\nFREQUENCY\t100\nMARKER_NAMES\t{}\n1\t2\t3\n"
MOT = "grf\nnRows=2\nendheader\ntime"
ANNOUNCED = {
    "frames.trc": TABLE.format(10**12, 10**9) + ROWS,
    "gap.trc": TABLE.format(3, 2) + ROWS + "3\t1e9\t1\t2\t3\t4\t5\t6\n",
    "spaces.trc": "PathFileType 4\nDataRate NumFrames\n100 1\nFrame# Time " + "a " * 2_000_000 + "\nX1\n\n1 0 1 2 3\n",
    "gap.csv": VICON + "999999999999,0,1,2,3\n",
    "frames.tsv": QUALISYS.format(10**12, "a"),
    "names.tsv": QUALISYS.format(1, "a\t" * 1_000_000),
    "columns.mot": MOT + "\tground_force_vx" * 500_000 + "\n0" + "\t1" * 500_000 + "\n",
    "frames.bvh": deep_bvh(3, 2).decode().replace("Frames: 2", "Frames: 99999999999999"),
}


@pytest.mark.parametrize("name", ANNOUNCED)
def test_counts_that_a_header_announces_take_no_memory(tmp_path, name):
    """Counts of frames, rows and columns, and times or frame numbers far apart: next to none beside the text."""
    path = tmp_path / name
    path.write_text(ANNOUNCED[name])
    tracemalloc.start()
    try:
        with pytest.raises(ClipError):
            (read_loads if name.endswith("mot") else load_clip)(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * path.stat().st_size + 2_000_000


@pytest.mark.parametrize(
    ("at", "number"),
    [
        (2, "<H65535"),
        (4, "<H65535"),
        (8, "<H65535"),
        (12, "<f-1e30"),
        (16, "<H65535"),
        (18, "<H65535"),
        (20, "<f1e-30"),
    ],
)
def test_counts_in_the_header_of_a_c3d_file_take_no_memory(mocap, at, number):
    """Points, channels, the last frame, the scale, the first block of the data, samples a frame, and the rate."""
    data = bytearray(mocap("vicon_c3d/shd01.c3d").read_bytes())
    struct.pack_into(number[:2], data, at, float(number[2:]) if number[1] == "f" else int(number[2:]))
    tracemalloc.start()
    try:
        with contextlib.suppress(ClipError):
            parse_c3d(bytes(data), "a.c3d")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * len(data) + 2_000_000
