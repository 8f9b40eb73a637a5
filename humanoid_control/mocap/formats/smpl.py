"""Reader of SMPL, SMPL+H and SMPL-X motions.

The licence of the body models forbids copying their joint places: bones are those of an average person. Limb directions
follow from rotations alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.formats.common import Size, scale_of_skeleton
from humanoid_control.mocap.skeleton import forward_kinematics

JOINTS = (
    "pelvis", "left_hip", "right_hip", "spine1", "left_knee", "right_knee", "spine2", "left_ankle", "right_ankle",
    "spine3", "left_foot", "right_foot", "neck", "left_collar", "right_collar", "head", "left_shoulder",
    "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist",
)  # fmt: skip
PARENTS = (-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19)
N = len(JOINTS)  # body joints; SMPL adds 2 hands, SMPL+H 30 finger joints, SMPL-X also jaw and eyes

# -------- an average person

HEIGHT, MAN = 1.66, 1.74  # [m] defaults
HEIGHT_STEP = 0.1  # [m] per unit of the first shape coefficient
_HEIGHTS = (1.3, 2.1)  # [m] plausible range
# Upper arm, forearm, thigh, shank: de Leva 1996 (J. Biomech. 29, 1223-1230, table 4), between joint centres, mean of
# women and men, as shares of their mean height (1.738 m). Trunk: his distance from mid-hip to suprasternal notch
# (0.305), distributed over the spine joints. Foot: Drillis and Contini 1966 (in Winter 2009, fig. 4.1). Rest pose of
# SMPL: arms to the sides, palms down; x left, y up, z forward. Its legs and arms deviate by up to 8 degrees from
# straight, measured between recorded markers.
_SHARES = {
    "pelvis": (0.0, 0.0, 0.0), "hip": (0.045, -0.050, 0.0), "knee": (0.007, -0.2265, -0.018),
    "ankle": (0.003, -0.2465, -0.033), "foot": (0.010, -0.034, 0.075), "spine1": (0.0, 0.070, 0.0),
    "spine2": (0.0, 0.080, 0.0), "spine3": (0.0, 0.030, 0.0), "neck": (0.0, 0.127, -0.010),
    "head": (0.0, 0.045, 0.015), "collar": (0.045, 0.072, 0.0), "shoulder": (0.060, 0.018, -0.010),
    "elbow": (0.160, 0.005, 0.0), "wrist": (0.153, 0.006, 0.0),
}  # fmt: skip
# Other points: name, joint, place on it [share of the height], left side.
_POINTS = (
    ("left_toe", "left_ankle", (0.018, -0.039, 0.107)), ("left_heel", "left_ankle", (0.0, -0.039, -0.033)),
    ("left_thumb_side", "left_wrist", (0.0, 0.0, 0.018)), ("left_little_side", "left_wrist", (0.0, 0.0, -0.018)),
    ("left_knuckles", "left_wrist", (0.048, 0.0, 0.0)),
)  # fmt: skip
_HEAD = (("head_top", "head", (0.0, 0.105, 0.0)), ("head_front", "head", (0.0, 0.0525, 0.06)))
_CHUNK = 4096  # frames with rotations in memory


def _sided(name: str, place: tuple[float, float, float]) -> np.ndarray:
    """Return a place on the left, or its mirror image."""
    return np.array(place) * [-1.0 if name.startswith("right") else 1.0, 1.0, 1.0]


OFFSETS = np.array([_sided(j, _SHARES[j.removeprefix("left_").removeprefix("right_")]) for j in JOINTS])
"""(22, 3) position of each joint in its parent [share of the height]."""
POINTS = tuple(
    (name, JOINTS.index(joint), _sided(name, place))
    for name, joint, place in (
        *_HEAD,
        *_POINTS,
        *((n.replace("left", "right"), j.replace("left", "right"), p) for n, j, p in _POINTS),
    )
)
_CHAIN = float(np.linalg.norm(OFFSETS[[3, 6, 9, 12, 15, 1, 4, 7]], axis=1).sum())  # head to ankle

# -------- content of a file


@dataclass(frozen=True)
class SmplMotion:
    """SMPL motion.

    Attributes:
        rotations: (T, 22, 3) rotation vectors in the parents [rad]; NaN: missing.
        root: (T, 3) [m].
        shape: coefficients, possibly empty.
        scaling: relative to the model (AIST++).
        male: shape of the male model.
    """

    rotations: np.ndarray
    root: np.ndarray
    shape: np.ndarray
    scaling: float = 1.0
    male: bool = False


_WHOLE = ("poses", "pose_world", "pose_aa", "smpl_poses", "fullpose", "pose")
_ROOT = ("root_orient", "global_orient")
_BODY = ("pose_body", "body_pose")
_MOST = 1e6  # [rad, m] largest accepted number
_PATH = ("trans", "trans_world", "transl", "smpl_trans", "root_trans", "trans_orig")
_TURNS = 4 * np.pi  # [rad] largest plausible rotation vector
_FAR = 100.0  # [m] largest plausible distance from the origin


def find_smpl(arrays: Mapping[str, np.ndarray], source: str) -> SmplMotion | None:
    """Return the motion among named arrays, or None.

    Args:
        arrays: `poses` and `trans` (AMASS, SMPL, SMPL+H, SMPL-X), `root_orient`, `pose_body` and `trans` (SMPL-X),
            `global_orient`, `body_pose` and `transl` (GVHMR), `pose_world` and `trans_world` (WHAM), `smpl_poses`,
            `smpl_trans` and `smpl_scaling` (AIST++).

    Raises:
        ClipError: if shapes do not match, or the root path is missing.
    """
    from scipy.spatial.transform import Rotation  # slow import

    whole = next((arrays[k] for k in _WHOLE if k in arrays), None)
    if whole is None:
        root = next((arrays[k] for k in _ROOT if k in arrays), None)
        body = next((arrays[k] for k in _BODY if k in arrays), None)
        if root is None or body is None:
            return None
        root, body = _numbers(root, source, "root rotations"), _numbers(body, source, "rotations of the body")
        if len(root) != len(body):
            raise ClipError(f"{source}: {len(root)} frames of the root, {len(body)} of the body: export it again")
        whole = np.concatenate([root.reshape(len(root), -1), body.reshape(len(body), -1)], axis=1)
    whole = _numbers(whole, source, "joint rotations")
    if not len(whole):
        raise ClipError(f"{source}: contains no frames: export it again")
    flat = whole.reshape(len(whole), -1)
    if whole.ndim == 4 and whole.shape[2:] == (3, 3):
        if whole.shape[1] < N:
            raise ClipError(f"{source}: rotations of {whole.shape[1]} joints, the body has {N}")
        vectors = Rotation.from_matrix(whole[:, :N].reshape(-1, 3, 3)).as_rotvec().reshape(-1, N, 3)
    elif flat.shape[1] >= 3 * N and flat.shape[1] % 3 == 0:
        vectors = flat[:, : 3 * N].reshape(-1, N, 3).copy()  # without fingers, most of the data
    else:
        raise ClipError(
            f"{source}: {flat.shape[1]} numbers per frame are not joint rotations of SMPL: at least {3 * N} (three "
            f"for each of {N} joints) are needed"
        )
    path = next((arrays[k] for k in _PATH if k in arrays), None)
    if path is None:
        raise ClipError(
            f"{source}: has joint rotations but no path of the root ({', '.join(_PATH[:3])}): export it too"
        )
    path = np.squeeze(_numbers(path, source, "path of the root"))
    if path.ndim != 2 or path.shape[1] != 3:
        raise ClipError(f"{source}: the path of the root has shape {path.shape}, three numbers per frame are needed")
    if len(path) != len(vectors):
        raise ClipError(
            f"{source}: {len(vectors)} frames of rotations, {len(path)} of the root's path: export it again"
        )
    shape = _numbers(arrays["betas"], source, "betas") if "betas" in arrays else np.zeros(0)
    scaling = float(np.ravel(arrays["smpl_scaling"])[0]) if "smpl_scaling" in arrays else 1.0
    if not 1e-3 < scaling < 1e4:
        raise ClipError(f"{source}: smpl_scaling is {scaling:g}: correct it")
    male = (
        str(np.ravel(arrays["gender"])[0]).lower().removeprefix("b'").startswith("m") if "gender" in arrays else False
    )
    first = shape.reshape(-1, shape.shape[-1])[0] if shape.size else shape
    return SmplMotion(vectors, path, first, scaling, male)


def _numbers(array: np.ndarray, source: str, what: str) -> np.ndarray:
    """Return an array as bounded numbers, or raise ClipError."""
    try:
        if np.iscomplexobj(array):
            raise TypeError
        numbers = np.asarray(array, dtype=float)
    except (TypeError, ValueError):
        raise ClipError(f"{source}: the {what} are non-numeric: the file is damaged, or of another kind") from None
    if not (np.fmax.reduce(numbers, None, initial=0.0) < _MOST and np.fmin.reduce(numbers, None, initial=0.0) > -_MOST):
        raise ClipError(f"{source}: the {what} contain infinite numbers: export it again")
    return np.atleast_2d(numbers) if what != "betas" else numbers


def _other_units(motion: SmplMotion) -> tuple[str, ...]:
    """Warn of rotations not in radians and paths not in metres."""
    turned = float(np.nanmax(np.linalg.norm(motion.rotations, axis=2), initial=0.0))
    far = np.abs(motion.root / motion.scaling).max(axis=1)
    away = float(np.nanmedian(far)) if np.isfinite(far).any() else 0.0
    out = [f"joints are turned by up to {turned:.3g} rad: are the rotations in degrees?"] if turned > _TURNS else []
    out += [f"the root is {away:.4g} m from the origin: is its path in millimetres?"] if away > _FAR else []
    return tuple(out)


# -------- the clip


def smpl_clip(motion: SmplMotion, rate: float, source: str, size: Size, warnings: tuple[str, ...] = ()) -> MarkerClip:
    """Return the motion of an average person: joints, toes, heels, wrist sides, knuckles, front of the head.

    The height is 1.66 m + 0.1 m times the first shape coefficient (Ze et al. 2025), or 1.74 m for the male model,
    corrected if standing feet would slide.

    Args:
        rate: [Hz].
    """
    warnings = (*warnings, *_other_units(motion))
    shape = motion.shape if motion.shape.size and np.isfinite(motion.shape).all() else np.zeros(0)
    if motion.male:
        height, told = MAN, "the average of men"
    elif shape.size:
        height, told = HEIGHT + HEIGHT_STEP * float(shape[0]), f"the first of {shape.size} shape coefficients"
    else:
        height, told = HEIGHT, "an average, without shape coefficients"
    height = float(np.clip(height, *_HEIGHTS))
    places = _places(motion.rotations)
    places *= height  # in place: long recordings are large
    root = motion.root / motion.scaling
    names = [*JOINTS, *(name for name, _, _ in POINTS)]
    feet = places[:, [names.index("left_foot"), names.index("right_foot")]]
    if (factor := leg_factor(root, feet, rate)) is not None:
        height *= factor
        places *= factor
        told += f", and standing feet that must not slide ({factor - 1:+.0%})"
    note = f"bones of an average person (de Leva 1996) {height:.2f} m tall, by {told}: directions are the file's own"
    scale, size_notes = scale_of_skeleton(_CHAIN * height, source, 1.0, size)
    places += root[:, None]
    places *= scale
    name = PurePath(source).stem
    return MarkerClip(name, tuple(names), rate, places, source, (*warnings, note, *size_notes), "joint")


def _places(rotations: np.ndarray) -> np.ndarray:
    """Return joints and points (T, P, 3) about the root for rotations (T, 22, 3) [share of the height]."""
    from scipy.spatial.transform import Rotation  # slow import

    places = np.empty((len(rotations), N + len(POINTS), 3))
    for first in range(0, len(rotations), _CHUNK):
        vectors = rotations[first : first + _CHUNK]
        lost = np.isnan(vectors).any(axis=(1, 2))
        R = Rotation.from_rotvec(np.where(lost[:, None, None], 0.0, vectors).reshape(-1, 3)).as_matrix()
        R_PB = R.reshape(len(vectors), N, 3, 3).swapaxes(0, 1)
        p_PB = [np.tile(offset, (len(vectors), 1)) for offset in OFFSETS]
        p_WB, R_WB = forward_kinematics(PARENTS, p_PB, list(R_PB))
        out = places[first : first + _CHUNK]
        out[:, :N] = p_WB.swapaxes(0, 1)
        for k, (_, joint, place) in enumerate(POINTS):
            out[:, N + k] = p_WB[joint] + R_WB[joint] @ place
        out[lost] = np.nan
    return places


_LEAST_WAY = 0.5  # [m] shortest conclusive path of the feet about the root
_FACTORS = (0.75, 1.3)  # accepted range of the factor
_STANDING = 0.3  # share of the frames, with the slowest foot, that count as stance


def leg_factor(root: np.ndarray, feet: np.ndarray, rate: float) -> float | None:
    """Return the factor of leg length with least sliding in stance, or None.

    A foot's velocity is v_root + f v_foot/root, zero in stance. f is a least-squares fit over the frames with the
    slowest foot, updated with f.

    Args:
        root: (T, 3) [m].
        feet: (T, 2, 3) about the root [m].
        rate: [Hz].
    """
    v_root, v_feet = np.diff(root, axis=0)[:, None] * rate, np.diff(feet, axis=0) * rate
    known = np.isfinite(v_root).all(axis=(1, 2)) & np.isfinite(v_feet).all(axis=(1, 2))
    v_root, v_feet, factor = v_root[known], v_feet[known], 1.0
    if len(v_feet) < 10:
        return None
    for _ in range(8):
        speed = np.linalg.norm(v_root + factor * v_feet, axis=2)
        slower = np.argmin(speed, axis=1)
        frames = np.arange(len(speed))
        stands = speed[frames, slower] <= np.quantile(speed[frames, slower], _STANDING)
        of_root, of_foot = v_root[stands, 0], v_feet[frames, slower][stands]
        power = float((of_foot**2).sum())
        if float(np.linalg.norm(of_foot, axis=1).sum()) / rate < _LEAST_WAY:
            return None
        factor = float(-(of_root * of_foot).sum() / power)
        if not _FACTORS[0] < factor < _FACTORS[1]:
            return None
    return factor
