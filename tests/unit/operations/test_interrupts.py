"""The first request to stop is an exception; later ones do not disturb what cleans up."""

from __future__ import annotations

import signal
import threading

import pytest

from llamaops.errors import Interrupted
from llamaops.operations.interrupts import interruptible


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_raises_and_the_second_is_ignored(number: signal.Signals) -> None:
    cleaned = []

    def work() -> None:
        with interruptible():
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(number)
                cleaned.append(True)

    with pytest.raises(Interrupted) as caught:
        work()
    assert caught.value.signal_number == number
    assert cleaned == [True]


def test_a_shielded_end_is_not_disturbed() -> None:
    with interruptible() as interrupts:
        interrupts.shield()
        signal.raise_signal(signal.SIGINT)


def test_a_request_during_a_beginning_is_raised_when_that_is_done() -> None:
    begun = []

    def work() -> None:
        with interruptible() as interrupts:
            interrupts.hold()
            signal.raise_signal(signal.SIGTERM)
            begun.append(True)
            interrupts.release()

    with pytest.raises(Interrupted):
        work()
    assert begun == [True]


def test_the_handlers_that_were_there_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_the_main_thread_nothing_is_installed() -> None:
    seen = []

    def work() -> None:
        with interruptible():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
