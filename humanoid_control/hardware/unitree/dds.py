"""Both ends of `rt/lowcmd` and `rt/lowstate` over DDS, as bytes, for the driver and for its guardian.

Types are announced to other programs as the vendor's, but nothing is ever made into an object: frames go from and to
the middleware as they are on the wire. No compiled code is needed here, so that the guardian starts at once.
"""

from __future__ import annotations

import socket
import time
from functools import cache
from typing import Any
from xml.sax.saxutils import quoteattr

from cyclonedds._clayer import ddspy_take, ddspy_write  # the public calls make an object of each sample
from cyclonedds.core import DDSException, InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import make_idl_struct
from cyclonedds.idl import types as idl_types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from humanoid_control.hardware.transport import HardwareError
from humanoid_control.hardware.unitree.layout import Family, Struct, family_of

types_: Any = idl_types  # its arrays are subscripted, which no annotation of it says
COMMAND, STATE = "rt/lowcmd", "rt/lowstate"
QUEUE = 16  # states that wait for a reader
TIMEOUT = -10  # what a write returns that would have to wait
OFF_FRAMES, OFF_PAUSE = 5, 0.002  # frames without power at the end, seconds between them
ANY = SampleState.Any | ViewState.Any | InstanceState.Any
KINDS = {
    "u1": types_.uint8,
    "i2": types_.int16,
    "u2": types_.uint16,
    "i4": types_.int32,
    "u4": types_.uint32,
    "f4": types_.float32,
}
_domains: dict[int, tuple[str, Domain]] = {}


@cache
def message_type(struct: Struct) -> Any:
    """Class by which the middleware knows a message."""
    fields = {}
    for name, kind, count in struct.fields:
        one = message_type(kind) if isinstance(kind, Struct) else KINDS[kind]
        fields[name] = types_.array[one, count] if count else one
    return make_idl_struct(struct.name.rpartition(".")[2], struct.name, fields)


def _join(domain: int, interface: str) -> None:
    """Make sure that this process is in a domain on a network interface.

    Raises:
        HardwareError: no such interface; the process is in the domain on another one.
    """
    have = [name for _, name in socket.if_nameindex()]
    if interface and interface not in have:
        raise HardwareError(f"{interface}: no such network interface (have: {', '.join(have)})")
    if domain in _domains:
        if (other := _domains[domain][0]) != interface:
            raise HardwareError(
                f"DDS domain {domain} is used on {other or 'any interface'}, not on {interface or 'any interface'}"
            )
        return
    chosen = f"name={quoteattr(interface)}" if interface else 'autodetermine="true"'
    config = (
        '<CycloneDDS><Domain Id="any"><General><Interfaces>'
        f"<NetworkInterface {chosen}/></Interfaces></General></Domain></CycloneDDS>"
    )
    try:
        _domains[domain] = (interface, Domain(domain, config))
    except DDSException as e:
        raise HardwareError(f"DDS domain {domain} on {interface or 'any interface'}: {e}") from None


class Ends:
    """Writer of commands, reader of states, and an eye on other writers of commands.

    Attributes:
        invalid: samples that said only that a peer came or went. late: frames that the middleware could not take.
    """

    def __init__(self, interface: str, domain: int, family: Family, token: str) -> None:
        """Prepare; nothing is opened.

        Args:
            interface: network interface; empty: any. domain: of DDS. family: of messages.
            token: text by which the driver and its guardian know each other.
        """
        self._interface, self._domain, self._family = interface, domain, family
        self._token = token.encode()
        self.invalid = self.late = 0
        self._known: dict[int, bool] = {}
        self._participant: DomainParticipant | None = None

    def open(self, states: bool = True) -> None:
        """Join the domain; `states`: read them, and watch for other writers of commands.

        Raises:
            HardwareError: no such interface, or the middleware refuses.
        """
        _join(self._domain, self._interface)
        try:
            self._participant = p = DomainParticipant(self._domain)
            commands = Topic(p, COMMAND, message_type(self._family.command.struct))
            # Reliable, since a robot may ask for it; never waiting, since the next command is the better one.
            reliable = Qos(Policy.Reliability.Reliable(0), Policy.History.KeepLast(1), Policy.Userdata(self._token))
            self._writer = DataWriter(p, commands, reliable)
            self._write_to = self._writer._ref
            if states:
                topic = Topic(p, STATE, message_type(self._family.state.struct))
                self._reader = DataReader(p, topic, Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(QUEUE)))
                self._take_from = self._reader._ref
                self._waiting = WaitSet(p)
                self._waiting.attach(ReadCondition(self._reader, ANY))
                once = Qos(Policy.IgnoreLocal.Participant, Policy.History.KeepLast(1))
                self._watcher = DataReader(p, commands, once)
        except DDSException as e:
            self.close()
            raise HardwareError(f"DDS domain {self._domain} on {self._interface or 'any interface'}: {e}") from None

    def close(self) -> None:
        """Leave the domain."""
        for name in ("_waiting", "_watcher", "_reader", "_writer"):
            self.__dict__.pop(name, None)
        self._participant = None
        self._known.clear()

    def take(self) -> list[bytes]:
        """States that have come, in their order.

        Raises:
            HardwareError: the middleware refuses.
        """
        taken = ddspy_take(self._take_from, ANY, QUEUE)
        if isinstance(taken, int):
            raise HardwareError(f"{STATE} cannot be read: DDS error {taken}")
        frames = [frame for frame, info in taken if info.valid_data]
        self.invalid += len(taken) - len(frames)
        return frames

    def wait(self, seconds: float) -> None:
        """Wait for a state, no longer than that."""
        if seconds > 0:
            self._waiting.wait(int(1e9 * seconds))

    def write(self, frame: bytes) -> None:
        """Send a command.

        Raises:
            HardwareError: the middleware refuses.
        """
        code = ddspy_write(self._write_to, frame)
        if code == TIMEOUT:
            self.late += 1
        elif code < 0:
            raise HardwareError(f"{COMMAND} cannot be written: DDS error {code}")

    def others(self) -> int:
        """Writers of commands that are neither this one nor its guardian."""
        handles = self._watcher.get_matched_publications()
        for handle in handles:
            if handle not in self._known:
                self._known[handle] = self._ours(handle)
        return sum(not self._known[handle] for handle in handles)

    def _ours(self, handle: int) -> bool:
        found = self._watcher.get_matched_publication_data(handle)
        data = found.qos[Policy.Userdata] if found is not None and found.qos is not None else None
        return data is not None and bytes(data.data) == self._token

    def robots(self) -> int:
        """Readers of commands."""
        return len(self._writer.get_matched_subscriptions())


class DampingGuard:
    """Damps a robot when its driver is gone; see `GuardSpec`."""

    def __init__(self, interface: str, domain: int, family: str, token: str, off: str) -> None:
        """Join the domain at once: writers and readers need a while to find each other.

        Args:
            interface, domain, family, token: as for `Ends`. off: frame that takes the power away, in hex.

        Raises:
            HardwareError: as `Ends.open`.
        """
        self._ends, self._off = Ends(interface, domain, family_of(family), token), bytes.fromhex(off)
        self._ends.open(states=False)

    def damp(self, frame: bytes) -> None:
        """Send the last frame that damps.

        Raises:
            OSError: the middleware refuses.
        """
        try:
            self._ends.write(frame)
        except HardwareError as e:
            raise OSError(str(e)) from None

    def off(self) -> None:
        """Take the power away."""
        for _ in range(OFF_FRAMES):
            self.damp(self._off)
            time.sleep(OFF_PAUSE)

    def close(self) -> None:
        """Leave the domain."""
        self._ends.close()
