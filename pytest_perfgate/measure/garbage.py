"""Keep the garbage collector out of what is measured, and put it back after."""

import contextlib
import gc
from collections.abc import Iterator


class Garbage:
    """Collector kept off inside blocks; counts collections that ran there anyway."""

    def __init__(self) -> None:
        self.inside = 0
        self._in_block = False

    def _seen(self, phase: str, info: dict[str, int]) -> None:
        del info
        if phase == "start" and self._in_block:
            self.inside += 1

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Switch the collector off for one block."""
        gc.disable()
        self._in_block = True
        try:
            yield
        finally:
            self._in_block = False

    def between(self) -> None:
        """Collect what the block left behind."""
        gc.collect()


@contextlib.contextmanager
def quiet_garbage() -> Iterator[Garbage]:
    """Freeze what lives now, so that collecting between blocks is cheap.

    Notes
    -----
    Objects that were frozen before stay frozen: unfreezing cannot tell whose
    they are.
    """
    was_enabled = gc.isenabled()
    was_frozen = gc.get_freeze_count() > 0
    garbage = Garbage()
    gc.collect()
    gc.freeze()
    gc.callbacks.append(garbage._seen)  # noqa: SLF001 (its own factory)
    try:
        yield garbage
    finally:
        gc.callbacks.remove(garbage._seen)  # noqa: SLF001 (as above)
        if not was_frozen:
            gc.unfreeze()
        if was_enabled:
            gc.enable()
