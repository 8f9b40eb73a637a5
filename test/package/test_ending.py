"""The look for a deadlock of Fast DDS before a test ends: threads with the names that Fast DDS gives."""

import ctypes
import io
import socket
import threading
import time

import pytest

from test import ending

PR_SET_NAME = 15


@pytest.fixture
def receiving():
    """Start a thread with a name of Fast DDS that waits in a function; all end afterwards."""
    threads = []

    def start(name, wait):
        began = threading.Event()

        def run():
            ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
            began.set()
            wait()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        threads.append(thread)
        began.wait()
        time.sleep(0.05)

    yield start
    for thread in threads:
        thread.join(5.0)
        assert not thread.is_alive()


def test_a_receiving_thread_that_waits_for_a_lock_is_a_deadlock(receiving, monkeypatch):
    monkeypatch.setattr(ending, "stuck", [])
    lock, done = threading.Lock(), []
    lock.acquire()
    receiving("dds.udp.7001", lock.acquire)
    with pytest.warns(UserWarning, match="deadlock"):
        ending.end(lambda: done.append(1))
    assert not done and ending.stuck
    ending.end(lambda: done.append(1))
    assert done == [1], "the next node is ended, though that thread still waits"
    lock.release()


def test_waiting_for_packets_is_none_nor_is_another_thread_with_a_lock(receiving, monkeypatch):
    monkeypatch.setattr(ending, "stuck", [])
    lock, done = threading.Lock(), []
    lock.acquire()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets:
        packets.bind(("127.0.0.1", 0))
        receiving("dds.udp.7002", lambda: packets.recv(1))
        receiving("dds.asyn.0", lock.acquire)
        ending.end(lambda: done.append(1))
        packets.sendto(b"x", packets.getsockname())
        lock.release()
        time.sleep(0.1)
    assert done == [1] and not ending.stuck


def test_steps_are_taken_where_a_test_captures_the_error_stream(monkeypatch):
    done = []
    monkeypatch.setattr("sys.stderr", io.StringIO())  # it has no file number
    ending.end(lambda: done.append(1))
    assert done == [1]


@pytest.mark.nightly
@pytest.mark.ros
def test_after_a_deadlock_the_next_test_has_a_context_of_its_own(receiving, monkeypatch):
    rclpy = pytest.importorskip("rclpy")
    monkeypatch.setattr(ending, "stuck", [])
    lock = threading.Lock()
    lock.acquire()
    rclpy.init()
    receiving("dds.udp.7003", lock.acquire)
    with pytest.warns(UserWarning, match="deadlock"):
        ending.end(rclpy.try_shutdown)
    lock.release()
    rclpy.init()
    rclpy.shutdown()
    assert ending.stuck[1].ok(), "the other one is as it was"
    ending.stuck[1].try_shutdown()
