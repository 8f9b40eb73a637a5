"""Parts that all readers make: terms, the one input of most networks, the one output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import shown
from humanoid_control.policy.model import ACTION, Block, Input, Output, Term
from humanoid_control.policy.network import Network, Tensor
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
    from humanoid_control.errors import offer_names

    known = offer_names(name, sorted(NAMES))
    return f"{where}: the observation '{shown(name)}' is not known here: {known}; describe it in a file of your own"


def plain_shape(tensor: Tensor) -> tuple[int, ...]:
    """Shape of a tensor, with 1 for each dimension that is left open."""
    return tuple(max(d, 1) for d in tensor.shape)


def plain_input(network: Network | None, blocks: tuple[Block, ...], contradictions: list[str]) -> tuple[Input, ...]:
    """The one input of a network that takes a flat observation; as wide as its blocks where there is no network."""
    if network is None:
        return (Input("obs", (1, sum(b.size for b in blocks)), blocks),)
    if len(network.inputs) != 1:
        found = ", ".join(i.name for i in network.inputs)
        contradictions.append(f"{network.path}: it must have one input, an observation, and has {shown(found)}")
    one = network.inputs[0]
    return (Input(one.name, plain_shape(one), blocks),)


def plain_output(network: Network | None, count: int, contradictions: list[str]) -> tuple[Output, ...]:
    """The one output of a network that gives an action."""
    if network is None:
        return (Output("actions", (1, count), ACTION),)
    if len(network.outputs) != 1:
        found = ", ".join(o.name for o in network.outputs)
        contradictions.append(f"{network.path}: it must have one output, an action, and has {shown(found)}")
    one = network.outputs[0]
    return (Output(one.name, plain_shape(one), ACTION),)
