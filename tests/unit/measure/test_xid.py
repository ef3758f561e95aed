"""Errors of a GPU, as bindings old and new hand them over."""

import gc
import types

import pytest

from pytest_perfgate.measure.xid import BY_APPLICATIONS, MEANINGS, XidEvents, xid_text


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(f"error {value}")
        self.value = value


class Queue:
    """Gives what it holds, one by one, and then says that there is nothing."""

    def __init__(self, *held):
        self.held = list(held)

    def __call__(self, events, timeout_ms):
        assert (events, timeout_ms) == ("set", 0)
        if not self.held:
            raise NVMLError(10)
        one = self.held.pop(0)
        if isinstance(one, Exception):
            raise one
        return types.SimpleNamespace(eventData=one)


@pytest.fixture
def freed():
    return []


@pytest.fixture
def make_events(freed):
    """Register with a binding that knows these calls besides the usual ones."""

    def make(**calls):
        def register(gpu, kinds, events):
            assert (gpu, kinds, events) == ("gpu", 8, "set")

        usual = {
            "nvmlDeviceGetSupportedEventTypes": lambda _: 0x1F,
            "nvmlEventSetCreate": lambda: "set",
            "nvmlDeviceRegisterEvents": register,
            "nvmlEventSetFree": freed.append,
        }
        nvml = types.SimpleNamespace(
            NVMLError=NVMLError, NVMLLibraryMismatchError=KeyError, **usual | calls
        )
        return XidEvents(nvml, "gpu")

    return make


def fail(value):
    def call(*_):
        raise NVMLError(value)

    return call


def test_all_that_is_queued_is_read_and_no_more(make_events):
    queue = Queue(79, 63)
    events = make_events(nvmlEventSetWait_v2=queue)
    assert events.read() == (79, 63)
    assert events.read() == ()
    queue.held.append(31)
    assert events.read() == (31,)


@pytest.mark.parametrize(
    "newer",
    [
        {},
        {"nvmlEventSetWait_v2": fail(13)},
        {"nvmlEventSetWait_v2": Queue(KeyError("version"), KeyError("version"))},
    ],
)
def test_the_older_call_is_asked_where_the_newer_is_not_known(make_events, newer):
    assert make_events(nvmlEventSetWait=Queue(48), **newer).read() == (48,)


def test_no_call_at_all_is_no_evidence(make_events):
    assert make_events().read() is None


@pytest.mark.parametrize(
    "calls",
    [
        {"nvmlDeviceGetSupportedEventTypes": fail(3)},
        {"nvmlDeviceGetSupportedEventTypes": lambda _: 0x7},
        {"nvmlEventSetCreate": fail(4)},
        {"nvmlDeviceRegisterEvents": fail(4)},
    ],
)
def test_what_cannot_be_registered_is_not_waited_for(make_events, calls):
    def never(*_):
        raise AssertionError

    assert make_events(nvmlEventSetWait_v2=never, **calls).read() is None


def test_a_queue_that_breaks_is_asked_no_more(make_events):
    events = make_events(nvmlEventSetWait_v2=Queue(79, NVMLError(999), 63))
    assert events.read() == (79,)
    assert events.read() is None


def test_what_was_created_is_freed(make_events, freed):
    events = make_events(nvmlEventSetWait_v2=Queue())
    assert freed == []
    del events
    gc.collect()
    assert freed == ["set"]


def test_freeing_never_fails(make_events):
    events = make_events(nvmlEventSetWait_v2=Queue(), nvmlEventSetFree=fail(15))
    del events
    gc.collect()


def test_an_error_has_its_number_and_its_meaning_where_it_is_known():
    assert xid_text(79) == "XID 79 (it has fallen off the bus)"
    assert xid_text(999) == "XID 999"
    assert MEANINGS.keys() >= BY_APPLICATIONS
