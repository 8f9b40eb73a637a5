"""Reader of named arrays (NPZ, PKL, PT): SMPL motions, landmarks, joint positions."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import PurePath

import numpy as np

from humanoid_control.documents import read_array
from humanoid_control.errors import ClipError, first_few, first_line
from humanoid_control.mocap.clip import MarkerClip, distinct_labels
from humanoid_control.mocap.formats.common import AS_STATED, Size, check_growth, scale_of_markers
from humanoid_control.mocap.formats.landmarks import find_landmarks, landmark_clip
from humanoid_control.mocap.formats.pickled import load_pickle, load_tensors, named_arrays
from humanoid_control.mocap.formats.smpl import find_smpl, smpl_clip

GVHMR_RATE = 30.0  # [Hz] of converted videos; files state no rate
_RATES = ("mocap_framerate", "mocap_frame_rate", "fps", "framerate", "frame_rate", "rate", "mocap_fps")
_POSITIONS = ("positions", "joint_positions", "joints", "markers", "joints3d", "keypoints3d", "posed_joints")
_LABELS = ("labels", "names", "joint_names", "marker_names", "marker_labels")
_ROBOT = ("dof_pos", "joint_angles", "qpos", "joint_pos", "root_quaternion")


def parse_npz(data: bytes, source: str, rate: float | None = None, size: Size = AS_STATED) -> MarkerClip:
    """Return the clip of an NPZ file, recognised by array names.

    Args:
        rate: [Hz], for a file without rate.

    Raises:
        ClipError: if the file is invalid, pickled, without rate, or not a recording.
    """
    return clip_of_arrays(_arrays(data, source), source, rate, size)


def parse_pickle(data: bytes, source: str, rate: float | None = None, size: Size = AS_STATED) -> MarkerClip:
    """Return the clip of a pickle of arrays (AIST++, scripts)."""
    return clip_of_arrays(named_arrays(load_pickle(data, source), source), source, rate, size)


def parse_tensors(data: bytes, source: str, rate: float | None = None, size: Size = AS_STATED) -> MarkerClip:
    """Return the clip of a torch.save file; `smpl_params_global` (GVHMR) implies 30 Hz."""
    content = load_tensors(data, source)
    assumed = GVHMR_RATE if isinstance(content, Mapping) and "smpl_params_global" in content else None
    return clip_of_arrays(named_arrays(content, source), source, rate, size, assumed)


def clip_of_arrays(
    arrays: Mapping[str, np.ndarray], source: str, rate: float | None, size: Size, assumed: float | None = None
) -> MarkerClip:
    """Return the clip of named arrays: SMPL motion, landmarks, or labelled positions (T, M, 3).

    Args:
        assumed: default rate of the writing program [Hz].

    Raises:
        ClipError: if there is no recording or rate.
    """
    motion = find_smpl(arrays, source)
    landmarks = None if motion is not None else find_landmarks(arrays)
    positions = next((k for k in _POSITIONS if k in arrays), None)
    labels = next((k for k in _LABELS if k in arrays), None)
    if motion is None and landmarks is None and (positions is None or labels is None):
        robot = [k for k in _ROBOT if k in arrays]
        if robot:
            raise ClipError(f"{source}: contains the motion of a robot ({robot[0]}), not of a person: give a recording")
        raise ClipError(
            f"{source}: contains no known motion (arrays: {first_few(arrays, 6)}): it needs poses and trans "
            "(SMPL), landmarks (T, 33, 3), or positions (T, M, 3) with labels, and fps"
        )
    found, warnings = _rate(arrays, rate, assumed, source)
    if motion is not None:
        return smpl_clip(motion, found, source, size, warnings)
    if landmarks is not None:
        return landmark_clip(landmarks, found, source, size, warnings)
    table = np.asarray(arrays[positions or ""], dtype=float)
    named, notes = distinct_labels(
        [str(x.decode() if isinstance(x, bytes) else x) for x in arrays[labels or ""].ravel()]
    )
    if table.ndim != 3 or table.shape[1:] != (len(named), 3):
        raise ClipError(
            f"{source}: '{positions}' has the shape {table.shape}, {len(named)} labels need (T, {len(named)}, 3)"
        )
    table = np.where((table == 0).all(axis=2, keepdims=True), np.nan, table)
    scale, unit_notes = scale_of_markers(table, "", source, size)
    warnings += notes + unit_notes
    return MarkerClip(PurePath(source).stem, named, found, table * scale, source, warnings)


def _arrays(data: bytes, source: str) -> dict[str, np.ndarray]:
    """Return the arrays of an NPZ file without objects."""
    found, pickled = {}, []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_growth(sum(info.file_size for info in archive.infolist()), len(data), source)
            for info in archive.infolist():
                if not info.filename.endswith(".npy"):
                    continue
                try:
                    with archive.open(info) as content:  # stream: long recordings are large
                        array = read_array(content, info.file_size)
                    found[info.filename.removesuffix(".npy")] = array
                except ValueError as error:
                    if "holds objects" not in str(error):
                        raise
                    pickled.append(info.filename.removesuffix(".npy"))
    except ClipError:
        raise
    except Exception as error:  # numpy, zipfile, zlib and tokenize raise different errors
        raise ClipError(f"{source}: not an NPZ file, or a damaged one ({first_line(error)}): copy it again") from None
    if not found:
        reason = f"only pickled objects ({first_few(pickled, 3)})" if pickled else "no arrays"
        raise ClipError(f"{source}: holds {reason}: save numbers with numpy.savez")
    return found


def _rate(
    arrays: Mapping[str, np.ndarray], given: float | None, assumed: float | None, source: str
) -> tuple[float, tuple[str, ...]]:
    """Return the rate of file, caller or writing program, and a note."""
    name = next((k for k in _RATES if k in arrays and np.size(arrays[k]) == 1), None)
    if name is not None:
        try:
            stated = float(np.ravel(arrays[name])[0])
        except (TypeError, ValueError):
            stated = float("nan")
        if not (np.isfinite(stated) and stated > 0):
            raise ClipError(f"{source}: '{name}' is not a frame rate: correct it")
        whole = round(stated)
        stated = float(whole) if whole and abs(stated - whole) < 1e-4 * whole else stated
        differs = given is not None and abs(given / stated - 1) > 1e-3
        return stated, (f"the file states {stated:g} Hz: the given {given:g} Hz is not used",) if differs else ()
    if given is not None:
        return given, ()
    if assumed is not None:
        return assumed, (f"the file contains no frame rate: {assumed:g} Hz is assumed, or give it (--rate)",)
    raise ClipError(f"{source}: states no frame rate: give it (--rate 30, or rate=30 to load_clip)")
