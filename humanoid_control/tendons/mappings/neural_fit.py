"""Training of the neural joint-muscle mapping: quasi-Newton on all samples, then the last layer exactly."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from scipy.optimize import minimize

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array, FitReport, Geometry, MappingInterrupted, Progress
from humanoid_control.tendons.mappings.neural_mapping import NeuralMapping, Weights


def fit_neural(
    geometry: Geometry,
    joint_names: Sequence[str],
    muscle_names: Sequence[str],
    limits: Array,
    postures: Array,
    width: int = 32,
    iterations: int = 1500,
    seed: int = 0,
    model_hash: str = "",
    progress: Progress | None = None,
) -> NeuralMapping:
    """Least-squares network of two hidden layers through the lengths at the postures (S, D) [rad].

    The source gives neither layers nor method; these are this project's: tanh units, lengths scaled to unit variance,
    L-BFGS over all samples at once, and the output weights by linear least squares at the end.

    Args:
        width: units of each hidden layer. iterations: of L-BFGS at the most.
        progress: called after each iteration; answering False interrupts.

    Raises:
        ConfigError: width or iterations below 1, or fewer postures than units. MappingInterrupted: by `progress`.
    """
    limits = np.asarray(limits, float)
    if width < 1 or iterations < 1 or len(postures) < 2 * width:
        raise ConfigError(
            f"neural mapping: width {width}, {iterations} iterations, {len(postures)} postures; "
            f"width and iterations from 1, at least {2 * max(width, 1)} postures"
        )
    begin = perf_counter()
    x = (postures - limits.mean(axis=1)) * 2.0 / (limits[:, 1] - limits[:, 0])
    zero_lengths = geometry(np.zeros((1, len(limits))))[0][0]
    lengths = geometry(postures)[0] - zero_lengths
    mean, size = lengths.mean(axis=0), np.maximum(lengths.std(axis=0), 1e-12)
    target = (lengths - mean) / size
    shapes = [
        (width, len(limits)),
        (width,),
        (width, width),
        (width,),
        (len(muscle_names), width),
        (len(muscle_names),),
    ]
    rng = np.random.default_rng(seed)
    start = np.concatenate(
        [(rng.standard_normal(s) / np.sqrt(s[-1]) if len(s) > 1 else np.zeros(s)).ravel() for s in shapes]
    )
    done = 0

    def after(_: Array) -> None:
        nonlocal done
        done += 1
        if progress is not None and progress(done / iterations) is False:
            raise MappingInterrupted(f"mapping: interrupted after {done} of {iterations} iterations; nothing was kept")

    found = minimize(
        _loss, start, (x, target, shapes), "L-BFGS-B", jac=True, callback=after,
        options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 30, "ftol": 1e-14, "gtol": 1e-10},
    )  # fmt: skip
    W1, b1, W2, b2, _, _ = _split(found.x, shapes)
    weights = Weights(W1, b1, W2, b2, np.zeros((len(muscle_names), width)))
    mapping = NeuralMapping(weights, joint_names, muscle_names, limits, model_hash)
    # with a free offset, which is only taken off afterwards: the fit is not bent to pass through the zero posture
    columns = np.hstack([mapping.features(postures), np.ones((len(postures), 1))])
    solved = np.linalg.lstsq(columns, lengths, rcond=1e-10)[0]
    mapping.set_last_layer(solved[:-1].T)
    rms = float(np.sqrt(np.mean((columns @ solved - lengths) ** 2)))
    zero = float(np.abs(solved[-1]).max())
    mapping.fit = FitReport(len(postures), rms, zero, perf_counter() - begin)
    if progress is not None:
        progress(1.0)
    return mapping


def _split(flat: Array, shapes: list[tuple[int, ...]]) -> list[Array]:
    ends = np.cumsum([int(np.prod(s)) for s in shapes])
    return [part.reshape(s) for part, s in zip(np.split(flat, ends[:-1]), shapes, strict=True)]


def _loss(flat: Array, x: Array, target: Array, shapes: list[tuple[int, ...]]) -> tuple[float, Array]:
    """Mean squared error and its gradient by all weights (backpropagation)."""
    W1, b1, W2, b2, W3, b3 = _split(flat, shapes)
    a1 = np.tanh(x @ W1.T + b1)
    a2 = np.tanh(a1 @ W2.T + b2)
    e = a2 @ W3.T + b3 - target
    g3 = e * (2.0 / e.size)
    g2 = (g3 @ W3) * (1.0 - a2 * a2)
    g1 = (g2 @ W2) * (1.0 - a1 * a1)
    parts = (g1.T @ x, g1.sum(0), g2.T @ a1, g2.sum(0), g3.T @ a2, g3.sum(0))
    return float(np.mean(e * e)), np.concatenate([p.ravel() for p in parts])
