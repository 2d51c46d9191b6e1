"""Answers that are kept: bounded in bytes, never those in doubt, under threads and forks."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from layoutalg.ground.cache import bytes_of, kept


def test_bytes_count_what_is_held_once():
    shared = tuple(range(1_000))
    assert bytes_of(shared, shared) < 2 * bytes_of(shared)
    assert bytes_of(tuple(range(1_000, 2_000)), shared) > 1.8 * bytes_of(shared)


def test_the_bytes_are_bounded_and_the_oldest_goes_first():
    calls = []

    @kept(limit_bytes=100_000)
    def text(number):
        calls.append(number)
        return "x" * 5_000 + str(number)

    for number in range(100):
        text(number)
        text(0)
        assert text.bytes <= 100_000
        assert text.bytes == sum(weight for _, weight in text.entries.values())
    assert calls.count(0) == 1
    text(1)
    assert calls.count(1) == 2


def test_one_large_answer_is_not_kept():
    @kept(limit_bytes=8_000)
    def text(size):
        return "x" * size

    assert text(5_000) == "x" * 5_000
    assert not text.entries


def test_errors_and_doubtful_answers_are_not_kept():
    calls = []

    @kept(worth=bool)
    def answer(value):
        calls.append(value)
        if value == 1:
            raise KeyError(value)
        return value

    for _ in range(2):
        with pytest.raises(KeyError):
            answer(1)
        answer(0)
        answer(2)
    assert calls == [1, 0, 2, 1, 0]


def test_threads_see_right_answers():
    @kept(limit_bytes=20_000)
    def square(number, *, plus=0):
        return number * number + plus

    def work(seed):
        return all(square(n % 97, plus=seed % 3) == (n % 97) ** 2 + seed % 3 for n in range(seed, seed + 3_000))

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))
    assert square.bytes == sum(weight for _, weight in square.entries.values())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_does_not_wait_for_a_lock_of_its_parent():
    script = """
import os
from layoutalg.ground.cache import kept
@kept()
def double(x):
    return 2 * x
double(1)
double.lock.acquire()  # as another thread might at the moment of the fork
child = os.fork()
if child == 0:
    os._exit(0 if double(1) == 2 and double(3) == 6 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
