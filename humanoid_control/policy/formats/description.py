"""Policy description `humanoid_policy/1`, with facts missing in a network, and its draft."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.documents import yaml_text
from humanoid_control.errors import PolicyError, UnknownNameError, shown
from humanoid_control.policy.formats.parts import make_term, plain_shape, unknown_term
from humanoid_control.policy.formats.values import (
    MOST_NAMES,
    Fields,
    beside,
    checked_period,
    command_ranges,
    history_length,
    names,
    pairs,
    positive,
)
from humanoid_control.policy.model import (
    ACTION,
    DAMPING,
    FEEDBACK,
    FILL_FIRST,
    FILLS,
    LAYOUTS,
    OLDEST_FIRST,
    ORDERS,
    PER_TERM,
    REFERENCE,
    REFERENCE_CHANNELS,
    RESTS,
    STIFFNESS,
    TARGET,
    Block,
    GaitSignal,
    Input,
    Output,
    PolicyModel,
    Term,
)
from humanoid_control.policy.network import PolicyNetwork
from humanoid_control.policy.terms import KINDS, kind_of, size_of

SCHEMA = "humanoid_policy/1"
FORM = f"description {SCHEMA}"
KEYS = (
    *(
        "schema",
        "name",
        "network",
        "rate",
        "joints",
        "default",
        "action",
        "gains",
        "torque_limits",
        "inputs",
        "outputs",
    ),
    *("commands", "gait", "imu", "anchor", "bodies", "may_touch", "motion_length", "height_command", "held", "start"),
)
ACTION_KEYS = ("joints", "scale", "offset", "clip", "target_clip")
TERM_KEYS = ("term", "name", "scale", "clip", "history", "joints", "size")
BLOCK_KEYS = ("terms", "history", "layout", "order", "delayed", "fill")
OUTPUT_KINDS = (ACTION, TARGET, STIFFNESS, DAMPING, FEEDBACK, *(f"{REFERENCE}.{c}" for c in REFERENCE_CHANNELS))


def network_path(path: Path, values: dict[str, Any]) -> Path:
    """Return the path of the named network.

    Raises:
        PolicyError: if missing or outside the folder.
    """
    return beside(path, Fields(values, str(path)).text("network"), "network")


def read_description(path: Path, values: dict[str, Any], network: PolicyNetwork | None) -> PolicyModel:
    """Read a description.

    Raises:
        PolicyError: if a key is unknown or a value invalid.
    """
    d = Fields(values, str(path))
    d.known(KEYS)
    contradictions: list[str] = []
    joints = d.names("joints")
    action = d.within("action") if "action" in d else Fields({}, f"{path}: action")
    action.known(ACTION_KEYS)
    acted = _joints(action, "joints", joints)
    default = _by_joint(d, "default", joints)
    rest = dict(zip(joints, default.tolist(), strict=True))
    gains = d.within("gains") if "gains" in d else Fields({}, f"{path}: gains")
    gains.known(("kp", "kd"))
    outputs = _outputs(d, network, contradictions)
    given = {o.kind for o in outputs}
    n = len(acted)
    rows = d.within("inputs")
    inputs = tuple(_input(rows, name, network, (joints, acted), contradictions) for name in rows.values)
    if network is not None:
        for missing in sorted({i.name for i in network.inputs} - set(rows.values)):
            contradictions.append(f"{path}: the input '{shown(missing)}' of the network is not described")
    rate = d.number("rate")
    clip = pairs(action.values.get("clip"), f"{action.where}: 'clip'")
    target = pairs(action.values.get("target_clip"), f"{action.where}: 'target_clip'")
    return PolicyModel(
        path=path,
        form=FORM,
        name=d.text("name", path.stem),
        network=network.path if network else None,
        inputs=inputs,
        outputs=outputs,
        joints=joints,
        acted=acted,
        default=default,
        scale=_by_joint(action, "scale", acted) if TARGET not in given else np.ones(n),
        offset=_by_joint(action, "offset", acted) if "offset" in action else np.array([rest[j] for j in acted]),
        action_clip=clip,
        target_clip=None if target is None else np.tile(target, (n, 1)).T,
        kp=np.full(n, np.nan) if STIFFNESS in given else _by_joint(gains, "kp", acted),
        kd=np.full(n, np.nan) if DAMPING in given else _by_joint(gains, "kd", acted),
        torque_limit=_by_joint(d, "torque_limits", acted) if "torque_limits" in d else None,
        period=checked_period(1.0 / rate if rate > 0 else 0.0, f"{path}: 1 / 'rate'"),
        commands=command_ranges(d.within("commands").values, f"{path}: commands") if "commands" in d else {},
        gait=_gait(d.within("gait")) if "gait" in d else None,
        imu=d.text("imu", "") if "imu" in d else "",
        anchor=d.text("anchor", "") if "anchor" in d else "",
        motion_length=positive(d, "motion_length") if "motion_length" in d else 0.0,
        height_command=positive(d, "height_command") if "height_command" in d else np.nan,
        held=_by_joint(d, "held", joints) if "held" in d else None,
        start=_by_joint(d, "start", joints) if "start" in d else None,
        bodies=d.names("bodies") if "bodies" in d else (),
        may_touch=_touching(d),
        contradictions=tuple(contradictions),
    )


def _touching(d: Fields) -> tuple[tuple[str, str], ...]:
    """Read `may_touch`."""
    rows = d.values.get("may_touch")
    if rows is None:
        return ()
    what = f"{d.where}: 'may_touch'"
    if not isinstance(rows, list) or len(rows) > MOST_NAMES:
        raise PolicyError(f"{what} must be a list of pairs of links, got {shown(rows)}")
    found = [names(row, what) for row in rows]
    for row in found:
        if len(row) != 2:
            raise PolicyError(f"{what} must be pairs of links, got {shown(', '.join(row))}")
    return tuple((row[0], row[1]) for row in found)


def _joints(d: Fields, key: str, known: tuple[str, ...]) -> tuple[str, ...]:
    found = names(d.values[key], f"{d.where}: '{key}'") if key in d else known
    for joint in found:
        if joint not in known:
            raise PolicyError(f"{d.where}: {UnknownNameError('joint', joint, known)}")
    return found


def _by_joint(d: Fields, key: str, joints: tuple[str, ...]) -> np.ndarray:
    """Return numbers by joint from one number, a list, or a mapping (missing: 0)."""
    value = d.values.get(key)
    if not isinstance(value, dict):
        if value is None:
            raise PolicyError(f"{d.where}: '{key}' is missing")
        return d.numbers(key, len(joints))
    row = Fields(value, f"{d.where}: {key}")
    row.known(joints)
    return np.array([row.number(j, 0.0) for j in joints])


def _gait(d: Fields) -> GaitSignal:
    d.known(("period", "phases", "rest"))
    phases = d.values.get("phases", [0.0, float(np.pi)])
    count = len(phases) if isinstance(phases, list) else 1
    if not count:
        raise PolicyError(f"{d.where}: 'phases' must be one number a foot, got none")
    period = checked_period(d.number("period"), f"{d.where}: 'period'")
    return GaitSignal(period, tuple(d.numbers("phases", count, 0.0).tolist()), d.one_of("rest", RESTS, RESTS[1]))


def _shape(network: PolicyNetwork | None, name: str, size: int) -> tuple[int, ...]:
    found = next((t for t in (*network.inputs, *network.outputs) if t.name == name), None) if network else None
    return plain_shape(found) if found is not None else (1, size)


def _input(
    rows: Fields,
    name: str,
    network: PolicyNetwork | None,
    joints: tuple[tuple[str, ...], tuple[str, ...]],
    contradictions: list[str],
) -> Input:
    value, where = rows.values[name], f"{rows.where}: {shown(name)}"
    if network is not None and name not in {i.name for i in network.inputs}:
        raise PolicyError(f"{rows.where}: {UnknownNameError('input', name, [i.name for i in network.inputs])}")
    if value == "time_step":
        return Input(name, _shape(network, name, 1), time_step=True)
    if isinstance(value, dict):
        d = Fields(value, where)
        d.known(("feedback",))
        return Input(name, _shape(network, name, 1), feedback=d.text("feedback"))
    blocks, plain = [], list[Term]()
    for row in rows.rows(name):
        if "terms" not in row:
            if (term := _term(row, joints, contradictions)) is not None:
                plain.append(term)
            continue
        if plain:
            blocks.append(Block(tuple(plain)))
            plain = []
        blocks.append(_block(row, joints, contradictions))
    if plain:
        blocks.append(Block(tuple(plain)))
    return Input(name, _shape(network, name, sum(b.size for b in blocks)), tuple(blocks))


def _block(row: Fields, joints: tuple[tuple[str, ...], tuple[str, ...]], contradictions: list[str]) -> Block:
    row.known(BLOCK_KEYS)
    length = history_length(row.values.get("history"), f"{row.where}: 'history'")
    terms = [t for r in row.rows("terms") if (t := _term(r, joints, contradictions, length)) is not None]
    layout, order = row.one_of("layout", LAYOUTS, PER_TERM), row.one_of("order", ORDERS, OLDEST_FIRST)
    delayed = row.values.get("delayed", False)
    if not isinstance(delayed, bool):
        raise PolicyError(f"{row.where}: 'delayed' must be true or false, got {shown(delayed)}")
    if layout != PER_TERM and len({t.history for t in terms}) > 1:
        raise PolicyError(f"{row.where}: terms of a layout '{layout}' must have the same history")
    return Block(tuple(terms), layout, order, delayed, row.one_of("fill", FILLS, FILL_FIRST))


def _term(
    row: Fields, joints: tuple[tuple[str, ...], tuple[str, ...]], contradictions: list[str], length: int = 1
) -> Term | None:
    row.known(TERM_KEYS)
    word = row.text("term")
    kind = word if word in KINDS else kind_of(word)
    if kind is None:
        contradictions.append(unknown_term(row.where, word))
        return None
    about = _joints(row, "joints", joints[0])
    size = size_of(kind, len(about), len(joints[1])) or int(row.number("size", 1.0))
    if not 0 < size < 10_000:
        raise PolicyError(f"{row.where}: 'size' must be a number of elements, got {size}")
    scale = row.values.get("scale", 1.0)
    if isinstance(scale, dict):
        by_name = Fields(scale, f"{row.where}: scale")
        by_name.known(about)
        factors = np.array([by_name.number(j, 1.0) for j in about])
        if len(factors) != size:
            raise PolicyError(f"{row.where}: 'scale' by joints belongs to terms about joints")
    else:
        factors = row.numbers("scale", size, 1.0)
    clip = pairs(row.values.get("clip"), f"{row.where}: 'clip'")
    length = history_length(row.values["history"], f"{row.where}: 'history'") if "history" in row else length
    return make_term(row.text("name", word), kind, about, size, factors, clip, length)


def _outputs(d: Fields, network: PolicyNetwork | None, contradictions: list[str]) -> tuple[Output, ...]:
    """Read outputs; a single undescribed output is an action."""
    if "outputs" not in d:
        if network is not None and len(network.outputs) != 1:
            raise PolicyError(f"{d.where}: 'outputs' is missing, but the network has {len(network.outputs)}")
        name = network.outputs[0].name if network else "actions"
        return (Output(name, _shape(network, name, 1), ACTION),)
    rows, out = d.within("outputs"), []
    known = {o.name for o in network.outputs} if network else set(rows.values)
    for name in rows.values:
        if name not in known:
            raise PolicyError(f"{rows.where}: {UnknownNameError('output', name, known)}")
        out.append(Output(name, _shape(network, name, 1), rows.one_of(name, OUTPUT_KINDS, ACTION)))
    for missing in sorted(known - set(rows.values)):
        contradictions.append(f"{d.where}: the output '{shown(missing)}' of the network is not described")
    return tuple(out)


# -------- The draft


def draft_description(network: PolicyNetwork, model: PolicyModel | None = None) -> str:
    """Draft a description as YAML; `# ?` marks facts to be completed.

    Args:
        model: known facts, from another file.
    """
    lines = [f"schema: {SCHEMA}", f"name: {yaml_text(model.name if model else network.path.stem)}"]
    lines += [f"network: {yaml_text(network.path.name)}"]
    outputs = ", ".join(f"{o.name} {list(o.shape)}" for o in network.outputs)
    inputs = ", ".join(f"{i.name} {list(i.shape)}" for i in network.inputs)
    lines += [f"# The network takes {inputs} and gives {outputs}."]
    count = model and len(model.joints)
    actions = next((o.size for o in network.outputs), 0)
    period = model.period if model else 0.02
    lines += [f"rate: {1.0 / period:g}  # " + ("[Hz]" if model else f"? [Hz] {ASKED['rate']}")]
    if model is not None:
        lines += [f"joints: [{', '.join(yaml_text(j) for j in model.joints)}]", f"default: {_list(model.default)}"]
        lines += ["action:"]
        if model.acted != model.joints:
            lines += [f"  joints: [{', '.join(yaml_text(j) for j in model.acted)}]"]
        lines += [f"  scale: {_list(model.scale)}", f"  offset: {_list(model.offset)}"]
        if np.isfinite(model.kp).all():
            lines += [f"gains: {{kp: {_list(model.kp)}, kd: {_list(model.kd)}}}"]
    else:
        count = actions
        joints = ", ".join(f"joint_{k}" for k in range(actions))
        lines += [f"joints: [{joints}]  # ? {ASKED['joints']}", f"default: 0.0  # ? {ASKED['default']}"]
        lines += [
            f"action: {{scale: 0.25}}  # ? {ASKED['scale']}",
            f"gains: {{kp: 40.0, kd: 2.0}}  # ? {ASKED['gains']}",
        ]
    lines += ["# imu: pelvis  # ? in which link the trainer measured angular velocity and gravity", "inputs:"]
    for one in network.inputs:
        lines += [f"  {yaml_text(one.name)}:"]
        described = next((i for i in model.inputs if i.name == one.name), None) if model else None
        lines += _draft_terms(described, one.size, count or actions, actions)
    if len(network.outputs) > 1:
        lines += ["outputs:", *(f"  {yaml_text(o.name)}: action  # ? {ASKED['output']}" for o in network.outputs)]
    return "\n".join(lines) + "\n"


ASKED = {
    "rate": "how often the policy was run in training: 1 / (physics step x decimation)",
    "joints": "names of the joints, in the order of the action",
    "default": "the posture that the trainer subtracts from joint positions [rad]",
    "scale": "the factor between action and target [rad]",
    "gains": "kp [N m/rad] and kd [N m s/rad], one for all or a list in the order of the action",
    "output": f"one of {', '.join(OUTPUT_KINDS[:5])}, reference.joint_pos ...",
    "terms": "which terms, in which order, with which scales and history; they must be {size} numbers, and are {found}",
}


def _list(values: np.ndarray) -> str:
    return f"[{', '.join(f'{v:.10g}' for v in values)}]"


def _draft_terms(described: Input | None, size: int, joints: int, actions: int) -> list[str]:
    if described is not None and described.time_step:
        return ["    time_step"]
    if described is not None and described.feedback:
        return [f"    {{feedback: {yaml_text(described.feedback)}}}"]
    if described is not None and described.blocks:
        return [
            f"  - {{term: {t.kind}, name: {yaml_text(t.name)}, scale: {_list(np.array(t.scale))}, history: {t.history}"
            + (f", size: {t.size}}}" if KINDS[t.kind].size == 0 else "}")
            for b in described.blocks
            for t in b.terms
        ]
    usual = ("base_ang_vel", "projected_gravity", "velocity_command", "joint_pos_rel", "joint_vel", "last_action")
    found = sum(size_of(kind, joints, actions) for kind in usual)
    rows = [f"  - {{term: {kind}, scale: 1.0}}  # {size_of(kind, joints, actions)} numbers" for kind in usual]
    return [f"  # ? {ASKED['terms'].format(size=size, found=found)}", *rows]
