"""Body image: corrections of a tendon mapping, learnt in motion from independently known joint angles.

    x + T / k0 - l(theta) = a l(theta) + b + sum_j [c_j sin q_j + d_j (1 - cos q_j)] - kappa T,   j crossed

Wire x, tension T, unit stiffness k0; a corrects moment arms, b the zero, c and d attachments, kappa the wire
compliance. Recursive least squares, prior deviations 5 %, 3 mm, 5 mm and 0.3 / k0. A sample has the variance (0.3 mm)^2
+ sigma_theta^2 |G_i|^2. Slack tendons and fast motions are ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, SizeError
from humanoid_control.files import whole_file
from humanoid_control.tendons.mappings.exact import exact_mapping
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping
from humanoid_control.tendons.routing.geometry import TendonGeometry

FORMAT = "humanoid_body_image/1"
SCALE, OFFSET, ATTACHMENT, COMPLIANCE = 0.05, 3e-3, 5e-3, 0.3  # prior deviations: -, m, m, of 1 / k0
LENGTH_NOISE = 3e-4  # [m] of a path from wire and stretch
FASTEST = 3.0  # [rad/s] in faster motions lengths and angles are not simultaneous
TAUT = 2.0  # [N] above which a wire follows its path
A, B, KAPPA, FIRST = 0, 1, 2, 3  # columns of the parameters, followed by c and d


class BodyImage:
    """Learnt corrections of M tendons over D joints.

    Attributes:
        base: corrected mapping.
        stiffness: (M,) k0 [N/m].
        crossed: (M, D) crossings.
        parameters: (M, 3 + 2 D) a, b [m], kappa [m/N], c (D,), d (D,) [m].
        covariance: (M, 3 + 2 D, 3 + 2 D).
        samples: (M,) count.
    """

    def __init__(self, base: JointMuscleMapping, stiffness: Array, crossed: Array) -> None:
        """Create an image at its prior.

        Args:
            base: mapping to correct.
            stiffness: (M,) of wires [N/m].
            crossed: (M, D) crossings.

        Raises:
            SizeError: if a size is wrong.
            ConfigError: if a stiffness is not above 0.
        """
        m, d = len(base.muscle_names), len(base.joint_names)
        self.base, self.crossed = base, np.array(crossed, dtype=bool)
        self.stiffness = np.array(stiffness, dtype=float)
        if self.stiffness.shape != (m,) or self.crossed.shape != (m, d):
            raise SizeError(f"body image: needs {m} stiffnesses and ({m}, {d}) crossings")
        if not (np.isfinite(self.stiffness) & (self.stiffness > 0)).all():
            raise ConfigError("body image: the stiffness of every wire must be above 0")
        self.parameters = np.zeros((m, FIRST + 2 * d))
        prior = np.zeros_like(self.parameters)
        prior[:, A], prior[:, B] = SCALE**2, OFFSET**2
        prior[:, KAPPA] = (COMPLIANCE / self.stiffness) ** 2
        prior[:, FIRST : FIRST + d] = prior[:, FIRST + d :] = np.where(self.crossed, ATTACHMENT**2, 0.0)
        self.covariance = np.array([np.diag(row) for row in prior])
        self.samples = np.zeros(m, dtype=int)

    @classmethod
    def of_geometry(cls, geometry: TendonGeometry, stiffness: Array) -> BodyImage:
        """Return the image of routed tendons with wire stiffness (M,) [N/m]."""
        return cls(exact_mapping(geometry), stiffness, geometry.crossed)

    # -- learning ---------------------------------------------------------------------------------------------------

    def add(
        self,
        theta: Array,
        paths: Array,
        tensions: Array,
        noise: float = np.radians(0.5),
        seen: Array | None = None,
        rates: Array | None = None,
    ) -> int:
        """Learn from a sample; return the number of tendons that learnt.

        Args:
            theta: (D,) known angles [rad].
            paths: (M,) lengths x + T / k0 since zero [m].
            tensions: (M,) [N].
            noise: standard deviation of an angle [rad].
            seen: (D,) known angles, default all; tendons across unknown ones learn nothing.
            rates: (D,) [rad/s], if known.

        Raises:
            SizeError: if a size is wrong.
            ConfigError: if the noise is not above 0.
        """
        m, d = self.crossed.shape
        for what, row, size in (("angles", theta, d), ("lengths", paths, m), ("tensions", tensions, m)):
            if np.shape(row) != (size,):
                raise SizeError(f"body image: expected {size} {what}, got {np.shape(row)}")
        if not noise > 0:
            raise ConfigError(f"body image: the angle noise must be above 0, got {noise:g} rad")
        if rates is not None and (np.abs(rates) > FASTEST).any():
            return 0
        known = np.isfinite(theta) if seen is None else np.isfinite(theta) & np.asarray(seen, dtype=bool)
        usable = (tensions > TAUT) & np.isfinite(paths) & ~(self.crossed & ~known).any(axis=1)
        if not usable.any():
            return 0
        lengths, G = self.base.evaluate(np.where(known, theta, 0.0))
        phi = self._regressors(np.where(known, theta, 0.0), lengths, tensions)[usable]
        P = self.covariance[usable]
        gain = np.einsum("mij,mj->mi", P, phi)
        # Angle noise enters through the moment arms; without it, captured angles would be overrated.
        variance = LENGTH_NOISE**2 + noise**2 * (G[usable] ** 2).sum(axis=1)
        spread = variance + np.einsum("mi,mi->m", phi, gain)
        innovation = (paths - lengths)[usable] - np.einsum("mi,mi->m", phi, self.parameters[usable])
        self.parameters[usable] += gain * (innovation / spread)[:, None]
        P -= np.einsum("mi,mj->mij", gain, gain) / spread[:, None, None]
        self.covariance[usable] = 0.5 * (P + P.transpose(0, 2, 1))
        self.samples[usable] += 1
        return int(usable.sum())

    def _regressors(self, theta: Array, lengths: Array, tensions: Array) -> Array:
        """Return rows (M, 3 + 2 D); their product with the parameters corrects a path."""
        m, d = self.crossed.shape
        phi = np.zeros((m, FIRST + 2 * d))
        phi[:, A], phi[:, B], phi[:, KAPPA] = lengths, 1.0, -tensions
        phi[:, FIRST : FIRST + d] = np.where(self.crossed, np.sin(theta), 0.0)
        phi[:, FIRST + d :] = np.where(self.crossed, 1.0 - np.cos(theta), 0.0)
        return phi

    # -- use --------------------------------------------------------------------------------------------------------

    @property
    def offsets(self) -> Array:
        """(M,) learnt zero errors b [m]."""
        return self.parameters[:, B].copy()

    def corrected_paths(self, paths: Array, tensions: Array) -> Array:
        """Return lengths (M,) since zero [m] for the corrected mapping, from x + T / k0 [m] and tensions [N]."""
        return paths + self.parameters[:, KAPPA] * tensions - self.parameters[:, B]

    def mapping(self, base: JointMuscleMapping | None = None) -> CorrectedMapping:
        """Return a snapshot of the corrected mapping.

        Args:
            base: mapping of a subset, such as a group; default: all.

        Raises:
            ConfigError: if the image lacks a joint or tendon.
        """
        return CorrectedMapping(self, base or self.base)

    def predicted_deviation(self, theta: Array) -> Array:
        """Return standard deviations (M,) of corrected lengths [m] at angles (D,), excluding offset and wire."""
        lengths, _ = self.base.evaluate(theta)
        phi = self._regressors(theta, lengths, np.zeros(len(lengths)))
        phi[:, B] = 0.0
        return np.sqrt(np.maximum(np.einsum("mi,mij,mj->m", phi, self.covariance, phi), 0.0))

    # -- file -------------------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the image with names and routing hash."""
        with whole_file(path) as file, file.open("wb") as out:
            np.savez(
                out,
                format=np.array(FORMAT),
                joint_names=np.array(self.base.joint_names),
                muscle_names=np.array(self.base.muscle_names),
                model_hash=np.array(self.base.model_hash),
                stiffness=self.stiffness,
                parameters=self.parameters,
                covariance=self.covariance,
                samples=self.samples,
            )

    def load(self, path: Path) -> None:
        """Read a saved image.

        Raises:
            ConfigError: if the file is missing, damaged, or of another robot, routing or wire; the image is unchanged.
        """
        try:
            with np.load(path, allow_pickle=False) as data:
                found: dict[str, Any] = {name: data[name] for name in data.files}
        except FileNotFoundError:
            raise ConfigError(f"body image {path}: not found") from None
        except (OSError, ValueError, EOFError):
            raise ConfigError(f"body image {path}: is damaged or not a body image; learn it again") from None
        if str(found.get("format")) != FORMAT:
            raise ConfigError(f"body image {path}: is not a body image of this package; learn it again")
        same = str(found.get("model_hash")) == self.base.model_hash
        names = (("joint_names", self.base.joint_names), ("muscle_names", self.base.muscle_names))
        if not same or any(tuple(found.get(key, ())) != have for key, have in names):
            raise ConfigError(f"body image {path}: was learnt on another robot or routing; learn it for this one")
        if not np.array_equal(np.asarray(found.get("stiffness")), self.stiffness):
            raise ConfigError(f"body image {path}: was learnt with wires of another stiffness; learn it for these")
        arrays = [np.asarray(found.get(key, np.zeros(0)), dtype=float) for key in ("parameters", "covariance")]
        shapes = [self.parameters.shape, self.covariance.shape]
        if [a.shape for a in arrays] != shapes or not all(np.isfinite(a).all() for a in arrays):
            raise ConfigError(f"body image {path}: is damaged; learn it again")
        self.parameters[:], self.covariance[:] = arrays
        self.samples[:] = found["samples"]


class CorrectedMapping(JointMuscleMapping):
    """Mapping corrected by a snapshot of a body image: l (1 + a) + sum_j [c_j sin q_j + d_j (1 - cos q_j)].

    It is zero at zero angles; offsets b correct measured lengths instead.
    """

    kind = "body_image"

    def __init__(self, image: BodyImage, base: JointMuscleMapping) -> None:
        """Take a snapshot for the joints and tendons of a mapping."""
        super().__init__(base.joint_names, base.muscle_names, base.limits, base.model_hash)
        own = image.base
        for what, names, known in (
            ("joint", base.joint_names, own.joint_names),
            ("tendon", base.muscle_names, own.muscle_names),
        ):
            if missing := [n for n in names if n not in known]:
                raise ConfigError(f"body image: unknown {what} '{missing[0]}'")
        self.base = base
        self._tendons = [own.muscle_names.index(n) for n in base.muscle_names]
        self._joints = np.array([own.joint_names.index(n) for n in base.joint_names])
        self.take(image)

    def take(self, image: BodyImage) -> None:
        """Take another snapshot of the same joints and tendons."""
        d, p = len(image.base.joint_names), image.parameters[self._tendons]
        self.a = p[:, A].copy()
        self.c, self.d = p[:, FIRST + self._joints].copy(), p[:, FIRST + d + self._joints].copy()

    def evaluate_into(self, theta: Array, lengths: Array, jacobian: Array) -> None:
        self.base.evaluate_into(theta, lengths, jacobian)
        s, c = np.sin(theta), np.cos(theta)
        lengths *= 1.0 + self.a
        lengths += self.c @ s + self.d @ (1.0 - c)
        jacobian *= (1.0 + self.a)[:, None]
        jacobian += self.c * c + self.d * s

    def directional_into(self, theta: Array, v: Array, out: Array) -> None:
        self.base.directional_into(theta, v, out)
        out *= (1.0 + self.a)[:, None]
        out += (self.d * np.cos(theta) - self.c * np.sin(theta)) * v


class CorrectedGeometry:
    """Tendon geometry corrected by a body image, offsets included; other attributes are the geometry's."""

    def __init__(self, image: BodyImage, geometry: TendonGeometry) -> None:
        self.base, self.mapping = geometry, image.mapping(exact_mapping(geometry))
        self.offset = geometry.zero + image.offsets

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)

    def raw_into(self, theta: Array, lengths: Array, jacobian: Array) -> None:
        self.mapping.evaluate_into(np.ascontiguousarray(theta, dtype=float), lengths, jacobian)
        lengths += self.offset

    def jacobian(self, theta: Array) -> Array:
        return self.mapping.jacobian(theta)

    def jacobian_directional(self, theta: Array, v: Array) -> Array:
        return self.mapping.jacobian_directional(theta, v)


def group_images(image: BodyImage, mappings: dict[str, JointMuscleMapping]) -> dict[str, JointMuscleMapping]:
    """Return corrected mappings of estimator groups, to be exchanged between ticks."""
    return {name: image.mapping(base) for name, base in mappings.items()}
