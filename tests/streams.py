"""A make-believe torch.cuda with several streams, for tests that share it."""

import contextlib
import types

US = 1_000
LAUNCH_NS = 5 * US
"""What handing one piece of work over costs the host."""
CYCLES_PER_NS = 2.0


class Gpu:
    """Each stream is a queue of its own; events are put on the current one."""

    def __init__(self):
        self.host_ns = 0
        self.ends_ns = {"default": 0}
        self.current = "default"
        self.order = []
        gpu = self

        class Event:
            def __init__(self, *, enable_timing):
                assert enable_timing

            def record(self):
                gpu.order.append(("event", gpu.current))
                self.at_ns = max(gpu.ends_ns[gpu.current], gpu.host_ns)

            def elapsed_time(self, other):
                assert gpu.host_ns >= other.at_ns, "read before it has happened"
                return (other.at_ns - self.at_ns) / 1e6

        self.Event = Event

    @contextlib.contextmanager
    def stream(self, name):
        """Make a stream the current one, as torch.cuda.stream does."""
        before, self.current = self.current, name
        self.ends_ns.setdefault(name, 0)
        try:
            yield
        finally:
            self.current = before

    def wait_for(self, name):
        """Let the current stream wait for another, as Stream.wait_stream does."""
        last = max(self.ends_ns[self.current], self.ends_ns[name])
        self.ends_ns[self.current] = last

    def work(self, duration_ns):
        self.host_ns += LAUNCH_NS
        self._queue("work", duration_ns)

    def _sleep(self, cycles):
        self._queue("sleep", round(cycles / CYCLES_PER_NS))

    def _queue(self, what, duration_ns):
        begins = max(self.ends_ns[self.current], self.host_ns)
        self.ends_ns[self.current] = begins + duration_ns
        self.order.append((what, self.current))

    def synchronize(self, index):
        self.host_ns = max(self.host_ns, *self.ends_ns.values())
        self.order.append(("sync", None))

    def memory_stats(self, index):
        return {}

    def get_device_properties(self, index):
        return types.SimpleNamespace()

    def is_available(self):
        return True

    def device_count(self):
        return 1

    def set_device(self, index):
        pass
