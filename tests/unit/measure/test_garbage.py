import gc
import weakref

import pytest

from pytest_perfgate.measure.garbage import quiet_garbage


@pytest.fixture(autouse=True)
def as_it_was():
    yield
    gc.enable()
    gc.unfreeze()


def test_frozen_and_off_inside_and_back_after():
    with quiet_garbage() as garbage:
        assert gc.get_freeze_count() > 0
        with garbage.block():
            assert not gc.isenabled()
        garbage.between()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    assert garbage.inside == 0


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    with quiet_garbage() as garbage, garbage.block():
        pass
    assert not gc.isenabled()


def test_what_was_frozen_before_stays_frozen():
    gc.freeze()
    with quiet_garbage():
        pass
    assert gc.get_freeze_count() > 0


def test_collections_inside_a_block_are_counted_and_others_not():
    with quiet_garbage() as garbage:
        with garbage.block():
            gc.collect()
            gc.collect()
        garbage.between()
    gc.collect()
    assert garbage.inside == 2


class Knot:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self):
        self.itself = self


def test_what_a_block_leaves_behind_is_collected_after_it():
    with quiet_garbage() as garbage:
        with garbage.block():
            left = weakref.ref(Knot())
        assert left() is not None
        garbage.between()
        assert left() is None


def test_everything_is_put_back_after_an_error():
    before = list(gc.callbacks)
    with pytest.raises(ZeroDivisionError), quiet_garbage() as garbage, garbage.block():
        raise ZeroDivisionError
    assert gc.isenabled()
    assert gc.callbacks == before
