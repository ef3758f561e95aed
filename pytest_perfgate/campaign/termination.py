"""SIGTERM, which CI sends to what it cancels, as an interruption like Ctrl-C."""

import signal
import threading
from types import FrameType


class Termination:
    """From `begin` to `end` a SIGTERM is a KeyboardInterrupt, once.

    Any further one is ignored: what was measured is being written, and whoever
    cannot wait sends SIGKILL. A handler that somebody else has installed stands.
    """

    def __init__(self) -> None:
        self.received = False
        self._ours = False

    def begin(self) -> None:
        """Install the handler, where this process may and nobody else has."""
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._interrupt)
            self._ours = True

    def end(self) -> None:
        """Let a SIGTERM end the process again."""
        if self._ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._ours = False

    def _interrupt(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 (the interpreter's call)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.received = True
        raise KeyboardInterrupt
