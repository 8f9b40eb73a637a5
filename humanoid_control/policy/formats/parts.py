"""Parts that all readers make: terms, the one input of most networks, the one output."""

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
    """A term; the joints are kept where it is about joints."""
    factors = tuple(float(s) for s in np.broadcast_to(scale, size))
    of_joints = KINDS[kind].size == "joints" and len(joints) == size
    return Term(name, kind, size, factors, clip, history, tuple(joints) if of_joints else ())


def unknown_term(where: str, name: str) -> str:
    """The line about a term that no kind is called."""
    known = offer_names(name, sorted(NAMES))
    return f"{where}: the observation '{shown(name)}' is not known here: {known}; describe it in a file of your own"


def plain_shape(tensor: Tensor) -> tuple[int, ...]:
    """Shape of a tensor, with 1 for each dimension that is left open."""
    return tuple(max(d, 1) for d in tensor.shape)


def memory(network: PolicyNetwork) -> dict[str, str]:
    """Inputs that are fed from outputs, by name, as exporters of recurrent policies call them: `h_in` and `h_out`."""
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
    """Inputs of a network: one observation, the step of a motion, and states that are fed back."""
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
            contradictions.append(f"{network.path}: nothing says what the input '{shown(one.name)}' takes")
    return tuple(out)


def network_outputs(network: PolicyNetwork, kinds: Mapping[str, str], contradictions: list[str]) -> tuple[Output, ...]:
    """Outputs of a network by their names; the first one is the action where none is called so.

    Args:
        kinds: name -> kind of output.
    """
    back = set(memory(network).values())
    names = [o.name for o in network.outputs if o.name not in back]
    first = names[0] if names and not any(kinds.get(n) == ACTION for n in names) else ""
    out = []
    for one in network.outputs:
        kind = FEEDBACK if one.name in back else ACTION if one.name == first else kinds.get(one.name)
        if kind is None:
            contradictions.append(f"{network.path}: the output '{shown(one.name)}' is not known here")
            continue
        out.append(Output(one.name, plain_shape(one), kind))
    return tuple(out)


def plain_input(
    network: PolicyNetwork | None, blocks: tuple[Block, ...], contradictions: list[str]
) -> tuple[Input, ...]:
    """Inputs of a network that takes a flat observation; as wide as its blocks where there is no network."""
    if network is None:
        return (Input("obs", (1, sum(b.size for b in blocks)), blocks),)
    return network_inputs(network, blocks, contradictions)


def plain_output(network: PolicyNetwork | None, count: int, contradictions: list[str]) -> tuple[Output, ...]:
    """Outputs of a network that gives an action."""
    if network is None:
        return (Output("actions", (1, count), ACTION),)
    return network_outputs(network, {}, contradictions)
