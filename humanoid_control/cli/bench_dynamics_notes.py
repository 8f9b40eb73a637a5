"""What the rows of `humanoid bench dynamics` say: growth with size, and the published table beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np

# Schwienbacher 2014, Table 2.6: time of O(n) [us], dense and sparse relative to it, on five machines of 2008 to 2012.
PUBLISHED = {
    "type2": [(89.16, 1.162, 1.125), (121.7, 1.054, 1.038), (189.3, 1.005, 0.952), (77.71, 0.941, 0.904),
              (53.67, 1.011, 0.979)],
    "type3": [(75.17, 1.653, 1.477), (98.31, 1.561, 1.417), (141.0, 1.671, 1.437), (64.03, 1.411, 1.243),
              (46.12, 1.472, 1.247)],
}  # fmt: skip


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """Lines under the table."""
    t = {r["name"]: r["median"] for r in rows}
    lines = [
        "One core; median and shortest (best) of calls from Python. Stages, and table 2.6 'in a loop': measured in",
        "compiled loops.",
        *_table_2_6(t),
        f"pinocchio: articulated bodies without rotors and loops {t['pinocchio_aba_tree']:.1f} us; constrained",
        f"dynamics with the screws as loops {t['pinocchio_constrained_type2']:.1f} us,"
        f" {t['pinocchio_constrained_type2'] / t['fd_type2_on']:.1f} times ours; its harmonic drives are only",
        "armature there, which spares it 18 rotors.",
    ]
    lines += _world(t)
    if "dill_10" in t:
        lines += _growth(rows)
    return lines


def _world(t: dict[str, float]) -> list[str]:
    """How fast whole steps of 1 ms are."""
    words = {"world_step_lola": "ideal drives", "world_step_lola_rigid": "rigid", "world_step_lola_elastic": "elastic"}
    parts = [f"{word} {t[name]:.1f} us, {1000 / t[name]:.0f} times real time" for name, word in words.items()]
    lines = ["A step of 1 ms of the whole world, Lola on her feet:", *(f"  {part}" for part in parts)]
    if "mujoco_step_lola" in t:
        ratio = t["mujoco_step_lola"] / t["world_step_lola"]
        lines.append(f"  MuJoCo, ideal drives, its own contact {t['mujoco_step_lola']:.1f} us, {ratio:.1f} times ours")
    return lines


def _table_2_6(t: dict[str, float]) -> list[str]:
    lines = ["table 2.6            ours O(n)  dense/O(n)  sparse/O(n)   published: O(n) us, dense, sparse (5 machines)"]
    for kind, published in PUBLISHED.items():
        on, dense, sparse = (t[f"fd_{kind}_{s}"] for s in ("on", "dense", "sparse"))
        ranges = [f"{min(c):.3g}-{max(c):.3g}" for c in zip(*published, strict=True)]
        mean = np.mean(published, axis=0)
        lines.append(
            f"{kind:20} {on:7.1f} us {dense / on:10.2f} {sparse / on:12.2f}   {ranges[0]} us, {ranges[1]}, {ranges[2]}"
            f" (means {mean[1]:.2f}, {mean[2]:.2f})"
        )
        loop = [sum(t[f"{kind}_{s}_{x}"] for x in stages) for s, stages in _STAGES.items()]
        lines.append(f"{kind + ' in a loop':20} {loop[0]:7.1f} us {loop[1] / loop[0]:10.2f} {loop[2] / loop[0]:12.2f}")
    return lines


_STAGES = {
    "on": ("fw1", "bw", "fw2"),
    "dense": ("fw1", "matrix", "solve"),
    "sparse": ("fw1", "matrix", "solve"),
}


def growth(dof: np.ndarray, us: np.ndarray) -> tuple[float, float, float]:
    """Fit of a + b n to times with equal relative weight: a, b, and the largest relative deviation."""
    A = np.column_stack([np.ones_like(dof), dof]) / us[:, None]
    (a, b), *_ = np.linalg.lstsq(A, np.ones_like(us), rcond=None)
    return float(a), float(b), float(np.abs((a + b * dof) / us - 1).max())


def slope(dof: np.ndarray, us: np.ndarray) -> float:
    """Exponent of growth: slope in logarithms."""
    return float(np.polyfit(np.log(dof), np.log(us), 1)[0])


def _growth(rows: list[dict[str, Any]]) -> list[str]:
    by = {r["name"]: r for r in rows}
    levels = [n for n in range(1, 11) if f"dill_{n}" in by]
    dof = np.array([by[f"dill_{n}"]["dof"] for n in levels], dtype=float)
    times = {s: np.array([by[f"dill_{n}{s}"]["median"] for n in levels]) for s in ("", "_sparse", "_dense")}
    a, b, off = growth(dof, times[""])
    lines = [f"Dill, O(n): {a:.1f} us + {b:.3f} us for each degree of freedom, off by {off:.0%} at the most."]
    top = dof >= 128
    words = [f"{w} {slope(dof[top], (times[s] - (a if not s else 0))[top]):.2f}" for s, w in _WORDS.items()]
    lines.append(f"Exponents from 128 to {dof[-1]:.0f}: {', '.join(words)}; O(n) without its constant part.")
    gain = times["_dense"][-1] / times["_sparse"][-1]
    lines.append(f"At {dof[-1]:.0f}: dense takes {gain:.0f} times as long as sparse.")
    first = [f"Dill({n})" for k, n in enumerate(levels) if times[""][k] > min(times[s][k] for s in times)]
    lines.append(f"O(n) is the fastest of the three on all levels but: {', '.join(first) or 'none'}.")
    return lines


_WORDS = {"": "O(n)", "_sparse": "sparse", "_dense": "dense"}
