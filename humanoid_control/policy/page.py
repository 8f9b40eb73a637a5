"""One-page summary of a policy: terms, joints, assumptions, problems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from humanoid_control.policy.checks import CONTRADICTION, Examination
from humanoid_control.policy.model import ACTION, PER_TERM, Block, Input, PolicyModel, Term
from humanoid_control.policy.terms import KINDS
from humanoid_control.terminal import ReportTable

WIDEST = 44  # characters of a list in a cell
NO_HISTORY = "now"


def policy_page(found: Examination) -> Iterator[ReportTable | str]:
    """Yield the page part by part."""
    model = found.model
    yield from _head(found)
    yield _input_table(model)
    yield ReportTable("outputs", ("output", "numbers", "is"), [(o.name, o.size, o.kind) for o in model.outputs])
    yield _joint_table(found)
    if model.assumed:
        yield ReportTable(
            "assumed: the file does not state it", ("what", "taken", "who knows it"), [tuple(a) for a in model.assumed]
        )
    wrong = [f.text for f in found.findings if f.level == CONTRADICTION]
    notes = [f.text for f in found.findings if f.level != CONTRADICTION]
    if notes:
        yield "\n".join(["to check:", *(f"  {text}" for text in notes)])
    if wrong:
        yield "\n".join([f"contradictions: {len(wrong)}; this policy cannot run:", *(f"  {text}" for text in wrong)])
    else:
        yield "no contradictions"


def _head(found: Examination) -> Iterator[str]:
    model, network = found.model, found.network
    kind = "tracks a motion" if model.tracks else "follows a commanded velocity" if model.follows_velocity else "policy"
    joints = f"{len(model.joints)} joints observed, {len(model.acted)} driven"
    yield f"{model.name}: {model.form}; {kind}; {joints}; {1 / model.period:g} Hz"
    if network is not None:
        producer = network.producer or "producer not stated"
        yield f"network: {network.path.name}, {network.weights:,} weights, {producer}, sha256 {network.sha256[:16]}"
    if model.commands:
        units = {"x": "m/s", "y": "m/s", "yaw": "rad/s", "heading": "rad"}
        yield "commands: " + ", ".join(f"{a} {lo:g} to {hi:g} {units[a]}" for a, (lo, hi) in model.commands.items())
    facts = [f"{k}: {v}" for k, v in model.facts.items()]
    facts += [f"IMU in {model.imu or 'the root link'}"] + ([f"anchor {model.anchor}"] if model.anchor else [])
    if model.may_touch:
        facts.append("may touch: " + ", ".join(" and ".join(pair) for pair in model.may_touch))
    if model.gait is not None:
        facts.append(f"gait of {model.gait.period:g} s, at rest {model.gait.rest}")
    if model.motion_length > 0:
        facts.append(f"motion of {model.motion_length:g} s")
    if np.isfinite(model.height_command):
        facts.append(f"commanded height {model.height_command:g} m")
    if model.action_clip is not None:
        facts.append(f"action within {model.action_clip[0]:g} to {model.action_clip[1]:g}")
    yield "; ".join(facts)


def _input_table(model: PolicyModel) -> ReportTable:
    """Tabulate all terms without constant columns."""
    columns = ["input", "slice", "term", "is", "scale", "history"]
    rows = [row for one in model.inputs for row in _input_rows(one)]
    title = "inputs"
    leave = set()
    if len(model.inputs) == 1:
        title = f"input {model.inputs[0].name}, {model.inputs[0].size} numbers"
        leave.add(0)
    if all(row[5] in (NO_HISTORY, "") for row in rows):
        title += ", without a history"
        leave.add(5)
    kept = [k for k in range(len(columns)) if k not in leave]
    return ReportTable(title, [columns[k] for k in kept], [tuple(row[k] for k in kept) for row in rows])


def _input_rows(one: Input) -> Iterator[tuple[str, ...]]:
    every = f"0:{one.size}"
    if one.feedback:
        yield one.name, every, "", f"the last {one.feedback}, at first 0", "", ""
    elif one.time_step:
        yield one.name, every, "", "the step of the motion in the network", "", ""
    begin = 0
    for block in one.blocks:
        for slices, term in _slices(block, begin):
            kind = KINDS[term.kind]
            unit = ", ".join(w for w in (kind.unit, kind.frame) if w)
            scale, history = _values(np.array(term.scale)), _history(block, term.history)
            yield one.name, slices, term.name, f"{term.kind} [{unit}]", scale, history
        begin += block.size


def _slices(block: Block, begin: int) -> Iterator[tuple[str, Term]]:
    if block.layout == PER_TERM or all(t.history == 1 for t in block.terms):
        for term in block.terms:
            end = begin + term.size * term.history
            yield f"{begin}:{end}", term
            begin = end
        return
    width = sum(t.size for t in block.terms)
    for term in block.terms:
        yield f"{begin}:{begin + term.size} + {width} k", term
        begin += term.size


def _history(block: Block, length: int) -> str:
    if length == 1 and not block.delayed:
        return NO_HISTORY
    late = ", without the present one" if block.delayed else ""
    return f"{length} frames {block.layout}, {block.order}{late}"


def _joint_table(found: Examination) -> ReportTable:
    model = found.model
    rows: list[tuple[Any, ...]] = []
    for k, joint in enumerate(model.joints):
        row: list[Any] = [k, joint, _number(model.default[k])]
        if joint in model.acted:
            a = model.acted.index(joint)
            scale = _number(model.scale[a]) if model.output(ACTION) is not None else ""
            row += [a, scale, _number(found.kp[a]), _number(found.kd[a])]
            row.append("" if found.torques is None else _number(found.torques[a]))
        else:
            row += ["", "", "", "", ""]
        rows.append(tuple(row))
    columns = (
        "observed",
        "joint",
        "rest [rad]",
        "driven",
        "scale [rad]",
        "kp [N m/rad]",
        "kd [N m s/rad]",
        "requests at rest [N m]",
    )
    return ReportTable("joints, in the policy's order", columns, rows)


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "from an output"


def _values(values: np.ndarray) -> str:
    if len(set(values.tolist())) == 1:
        return f"{values[0]:g}"
    text = " ".join(f"{v:g}" for v in values)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 4]} ..."


def policy_data(found: Examination) -> dict[str, Any]:
    """Return the page as plain values, for JSON."""
    model = found.model
    return {
        "file": str(model.path),
        "form": model.form,
        "name": model.name,
        "network": None if found.network is None else {"file": found.network.path.name, "sha256": found.network.sha256},
        "rate": 1 / model.period,
        "inputs": [
            {
                "name": one.name,
                "shape": one.shape,
                "feedback": one.feedback or None,
                "time_step": one.time_step,
                "blocks": [
                    {
                        "layout": b.layout,
                        "order": b.order,
                        "delayed": b.delayed,
                        "terms": [
                            {"name": t.name, "kind": t.kind, "size": t.size, "scale": t.scale, "history": t.history}
                            for t in b.terms
                        ],
                    }
                    for b in one.blocks
                ],
            }
            for one in model.inputs
        ],
        "outputs": [{"name": o.name, "shape": o.shape, "kind": o.kind} for o in model.outputs],
        "joints": model.joints,
        "acted": model.acted,
        "default": model.default,
        "scale": model.scale,
        "kp": found.kp,
        "kd": found.kd,
        "commands": model.commands,
        "motion_length": model.motion_length or None,
        "height_command": model.height_command if np.isfinite(model.height_command) else None,
        "may_touch": model.may_touch,
        "torques_at_rest": found.torques,
        "assumed": [a._asdict() for a in model.assumed],
        "notes": [f.text for f in found.findings if f.level != CONTRADICTION],
        "contradictions": found.contradictions,
    }
