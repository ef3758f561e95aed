"""The same random numbers for a benchmark in every run, on both sides."""

import hashlib
import random
import sys
from collections.abc import Callable

Restore = Callable[[], None]
_NUMPY_SEEDS = 2**32


def stable_seed(seed: int, benchmark: str) -> int:
    """Mix base seed and benchmark id into 63 bits, the same on every machine."""
    digest = hashlib.blake2b(f"{seed}\0{benchmark}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class Seeding:
    """Seeds what is loaded, and remembers the states it found the first time."""

    def __init__(self) -> None:
        self._restores: dict[str, Restore] = {}

    def apply(self, seed: int, benchmark: str) -> None:
        """Seed `random`, and numpy and torch where somebody imported them."""
        value = stable_seed(seed, benchmark)
        self._remember("random", _random_state)
        random.seed(value)
        if "numpy" in sys.modules:
            self._remember("numpy", _numpy_state)
            sys.modules["numpy"].random.seed(value % _NUMPY_SEEDS)
        if "torch" in sys.modules:
            self._remember("torch", _torch_state)
            sys.modules["torch"].manual_seed(value)  # covers CUDA, lazily

    def _remember(self, name: str, state: Callable[[], Restore]) -> None:
        if name not in self._restores:
            self._restores[name] = state()

    def restore(self) -> None:
        """Put every state back; a second call does nothing."""
        while self._restores:
            self._restores.popitem()[1]()


def _random_state() -> Restore:
    state = random.getstate()
    return lambda: random.setstate(state)


def _numpy_state() -> Restore:
    numpy = sys.modules["numpy"]
    state = numpy.random.get_state()
    return lambda: numpy.random.set_state(state)


def _torch_state() -> Restore:
    torch = sys.modules["torch"]
    state = torch.random.get_rng_state()
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None

    def restore() -> None:
        torch.random.set_rng_state(state)
        if gpus is not None:
            torch.cuda.set_rng_state_all(gpus)

    return restore
