"""Named arrays and pickles: only arrays are built, whatever a file asks for; tensors are those of torch."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections import OrderedDict
from typing import ClassVar

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_clip
from humanoid_control.mocap.formats.npz import parse_npz, parse_pickle, parse_tensors
from humanoid_control.mocap.formats.pickled import load_pickle, load_tensors, named_arrays
from test.mocap.formats.test_smpl import AMASS, POSES, TRANS, T, npz

MOTION = {"poses": POSES.reshape(T, 66), "trans": TRANS, "fps": 30}


class Storage:
    """Pickles as torch writes a storage; the numbers go into the archive."""

    def __init__(self, array):
        self.array = array


class _FloatStorage:
    pass


_FloatStorage.__module__, _FloatStorage.__qualname__, _FloatStorage.__name__ = "torch", "FloatStorage", "FloatStorage"


def torch_file(content, version=b"3\n"):
    """A file as torch.save writes it, made without torch: content is a dictionary of float32 arrays."""
    stored = {}

    class Tensor:
        def __init__(self, array):
            self.array = np.ascontiguousarray(array, "<f4")

        def __reduce__(self):
            steps = tuple(s // 4 for s in self.array.strides)
            return _rebuild, (Storage(self.array), 0, self.array.shape, steps, False, OrderedDict())

    class Pickler(pickle._Pickler):  # in Python: it can be told what a name is
        def persistent_id(self, item):
            if not isinstance(item, Storage):
                return None
            key = str(len(stored))
            stored[key] = item.array.tobytes()
            return ("storage", _FloatStorage, key, "cpu", item.array.size)

        def save_global(self, item, name=None):
            if item is _FloatStorage:
                self.write(b"ctorch\nFloatStorage\n")
            elif item is _rebuild:
                self.write(b"ctorch._utils\n_rebuild_tensor_v2\n")
            else:
                super().save_global(item, name)

        dispatch: ClassVar = {**pickle._Pickler.dispatch, type: save_global, type(lambda: 0): save_global}

    def wrapped(value):
        if isinstance(value, dict):
            return {k: wrapped(v) for k, v in value.items()}
        return Tensor(value) if isinstance(value, np.ndarray) else value

    program = io.BytesIO()
    Pickler(program, 2).dump(wrapped(content))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", program.getvalue())
        for key, data in stored.items():
            archive.writestr(f"archive/data/{key}", data)
        archive.writestr("archive/version", version)
    return file.getvalue()


def _rebuild(*args):
    raise AssertionError("only its name is written")


def smpl(root, offset=0.0):
    return {"global_orient": POSES[:, 0] + root, "body_pose": POSES[:, 1:].reshape(T, 63), "transl": TRANS + offset}


def test_the_world_of_a_gvhmr_file_is_read_at_30_hz():
    data = torch_file({"smpl_params_incam": smpl(1.0), "smpl_params_global": smpl(0.0), "K_fullimg": np.eye(3)})
    clip = parse_tensors(data, "hmr4d_results.pt")
    assert clip.rate == 30
    assert any("30 Hz is assumed" in w for w in clip.warnings)
    assert parse_tensors(data, "hmr4d_results.pt", 25.0).rate == 25
    np.testing.assert_allclose(clip.positions, parse_npz(npz(**AMASS), "a.npz").positions, atol=1e-5)


def test_tensors_of_a_file_by_torch_itself(recording):
    """Two files of a published repository, written by torch: a regressor whose rows sum to one, and camera matrices."""
    rows = load_tensors(recording("smpl/jreg.pt").read_bytes(), "jreg.pt")
    assert rows.shape == (17, 6890)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-4)
    cameras = load_tensors(recording("smpl/cam2params.pt").read_bytes(), "cam2params.pt")
    for pose, lens in cameras.values():
        np.testing.assert_allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-5)
        assert lens[2, 2] == 1


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_pickles_of_arrays_are_read(protocol):
    clip = parse_pickle(pickle.dumps({"person": MOTION, "name": "x"}, protocol), "a.pkl")
    assert clip.rate == 30
    reference = parse_npz(npz(**MOTION), "a.npz")
    np.testing.assert_array_equal(clip.positions, reference.positions)


class Command:
    def __reduce__(self):
        return os.system, ("touch harmed",)


class Getter:
    def __reduce__(self):
        return getattr, ("", "upper")


@pytest.mark.parametrize("content", [Command(), {"poses": Command()}, Getter(), {"poses": np.array([Command()])}])
def test_a_program_in_a_pickle_is_refused_and_does_not_run(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walk.pkl").write_bytes(pickle.dumps(content))
    with pytest.raises(ClipError, match="if you trust it: python -c") as caught:
        load_clip("walk.pkl")
    assert str(caught.value).isprintable()
    assert not (tmp_path / "harmed").exists()


def test_arrays_of_objects_and_tensors_beyond_their_storage_are_refused():
    with pytest.raises(ClipError, match="an array of objects"):
        load_pickle(pickle.dumps(np.array([None, {}])), "a.pkl")
    good = torch_file({"poses": np.zeros((4, 66)), "trans": np.zeros((4, 3))})
    assert named_arrays(load_tensors(good, "a.pt"), "a.pt")["poses"].shape == (4, 66)
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        parts = {n: archive.read(n) for n in archive.namelist()}
    short = io.BytesIO()
    with zipfile.ZipFile(short, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data[:40] if name == "archive/data/0" else data)
    with pytest.raises(ClipError, match="larger than its storage"):
        load_tensors(short.getvalue(), "a.pt")


def test_damaged_files_are_refused_in_one_line():
    rng = np.random.default_rng(0)
    for data, parse in (
        (pickle.dumps(MOTION), parse_pickle),
        (npz(**AMASS), parse_npz),
        (torch_file({"smpl_params_global": smpl(0.0)}), parse_tensors),
    ):
        parse(data, "x.npz")
        for _ in range(150):
            broken = bytearray(data[: rng.integers(1, len(data))] if rng.random() < 0.3 else data)
            for _ in range(rng.integers(1, 6)):
                broken[rng.integers(len(broken))] = rng.integers(256)
            try:
                parse(bytes(broken), "x.npz")
            except ClipError as error:
                assert str(error).isprintable()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"dof_pos": np.zeros((5, 29)), "root_pos": np.zeros((5, 3))}, "the motion of a robot"),
        ({"a": np.zeros(3)}, "contains no known motion"),
        ({"positions": np.ones((5, 3, 3)), "labels": np.array(["a", "b"]), "fps": 30}, "2 labels need"),
    ],
)
def test_arrays_that_are_no_recording_are_refused(arrays, message):
    with pytest.raises(ClipError, match=message):
        parse_npz(npz(**arrays), "a.npz")


def test_positions_with_labels_are_markers():
    positions = np.random.default_rng(0).uniform(0, 1700, (6, 3, 3))
    positions[2, 1] = 0.0
    clip = parse_npz(npz(positions=positions, labels=np.array(["LASI", "RASI", "LSHO"]), fps=np.array(100)), "a.npz")
    assert clip.labels == ("LASI", "RASI", "LSHO")
    assert clip.rate == 100
    assert np.isnan(clip.positions[2, 1]).all()
    np.testing.assert_allclose(clip.positions[0], positions[0] / 1000)
