"""What the steps of the action say: to people, and to the runner."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from pytest_perfgate.github.commands import (
    Annotation,
    Level,
    annotate,
    command,
    harmless,
)
from pytest_perfgate.github.context import Context, read_event, resolve

TITLE = "pytest-perfgate"


def say(text: str) -> None:
    """Print what may hold names of tests: no line of it is a command."""
    print(harmless(text), flush=True)


def tell(level: Level, message: str) -> None:
    """Annotate the run."""
    annotation = Annotation(level=level, message=message, title=TITLE)
    print(command(annotation), flush=True)


def warn(message: str) -> None:
    """Annotate the run with a warning; nothing for an empty message."""
    if message:
        tell(Level.WARNING, message)


def tell_all(annotations: Iterable[Annotation]) -> None:
    """Annotate files, as many as the runner shows."""
    for line in annotate(annotations):
        print(line, flush=True)


@contextmanager
def only_warned(what: str) -> Iterator[None]:
    """Let nothing that fails in here change a verdict that is out already."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 (an error of ours is no regression)
        told = f"{what}: {type(error).__name__}: {error}; this is a bug, please tell us"
        warn(told)


def context_of(env: Mapping[str, str]) -> Context:
    """Read what is known of the job.

    Raises
    ------
    UsageError
        For addresses that do not belong together.
    """
    event, problem = read_event(env)
    number = env.get("PERFGATE_PR_NUMBER", "")
    return resolve(env, event, problem=problem, pr_number=number)
