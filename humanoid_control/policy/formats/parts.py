"""Common parts of readers: terms, inputs, outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from humanoid_control.errors import offer_names, shown
from humanoid_control.policy.model import ACTION, FEEDBACK, Block, Input, Output, Term
from humanoid_control.policy.network import PolicyNetwork, Tensor
from humanoid_control.policy.terms import KINDS, NAMES

TRAINER = "the trainer's configuration"


def make_term(
    name: str,
    kind: str,
    joints: Sequence[str],
    size: int,
    scale: np.ndarray | float = 1.0,
    clip: tuple[float, float] | None = None,
    history: int = 1,
) -> Term:
    """Create a term; joints are stored for joint terms."""
    factors = tuple(float(s) for s in np.broadcast_to(scale, size))
    of_joints = KINDS[kind].size == "joints" and len(joints) == size
    return Term(name, kind, size, factors, clip, history, tuple(joints) if of_joints else ())


def unknown_term(where: str, name: str) -> str:
    """Return the message for an unknown term."""
    known = offer_names(name, sorted(NAMES))
    return f"{where}: the observation '{shown(name)}' is not supported: {known}; write a description file"


def plain_shape(tensor: Tensor) -> tuple[int, ...]:
    """Return a shape with open dimensions as 1."""
    return tuple(max(d, 1) for d in tensor.shape)


def memory(network: PolicyNetwork) -> dict[str, str]:
    """Return recurrent inputs with their outputs, e.g. `h_in` and `h_out`."""
    sizes = {o.name: o.size for o in network.outputs}
    ends = {"_in": "_out", "0": "n", "_0": "_n"}
    found = {}
    for one in network.inputs:
        for end, back in ends.items():
            other = one.name.removesuffix(end) + back
            if one.name.endswith(end) and sizes.get(other) == one.size:
                found[one.name] = other
    return found


def network_inputs(network: PolicyNetwork, blocks: tuple[Block, ...], contradictions: list[str]) -> tuple[Input, ...]:
    """Return the inputs of a network: observation, motion steps, fed-back states."""
    fed, out, observed = memory(network), [], False
    for one in network.inputs:
        if one.name in fed:
            out.append(Input(one.name, plain_shape(one), feedback=fed[one.name]))
        elif one.name == "time_step":
            out.append(Input(one.name, plain_shape(one), time_step=True))
        elif not observed:
            observed = True
            out.append(Input(one.name, plain_shape(one), blocks))
        else:
            contradictions.append(f"{network.path}: the content of the input '{shown(one.name)}' is not described")
    return tuple(out)


def network_outputs(network: PolicyNetwork, kinds: Mapping[str, str], contradictions: list[str]) -> tuple[Output, ...]:
    """Return the outputs; the first is the action if none is named so.

    Args:
        kinds: by name.
    """
    back = set(memory(network).values())
    names = [o.name for o in network.outputs if o.name not in back]
    first = names[0] if names and not any(kinds.get(n) == ACTION for n in names) else ""
    out = []
    for one in network.outputs:
        kind = FEEDBACK if one.name in back else ACTION if one.name == first else kinds.get(one.name)
        if kind is None:
            contradictions.append(f"{network.path}: the output '{shown(one.name)}' is not supported")
            continue
        out.append(Output(one.name, plain_shape(one), kind))
    return tuple(out)


def plain_input(
    network: PolicyNetwork | None, blocks: tuple[Block, ...], contradictions: list[str]
) -> tuple[Input, ...]:
    """Return inputs of a flat observation, with or without network."""
    if network is None:
        return (Input("obs", (1, sum(b.size for b in blocks)), blocks),)
    return network_inputs(network, blocks, contradictions)


def plain_output(network: PolicyNetwork | None, count: int, contradictions: list[str]) -> tuple[Output, ...]:
    """Return outputs with an action."""
    if network is None:
        return (Output("actions", (1, count), ACTION),)
    return network_outputs(network, {}, contradictions)
