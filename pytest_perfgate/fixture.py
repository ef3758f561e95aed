"""`perfgate`: the object a benchmark calls.

Without a context (a plain test run) each body runs once, unmeasured, and
nothing heavy is imported: the workloads are imported where they are needed.
"""

import contextlib
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_perfgate.errors import NothingMeasured, UsageError

if TYPE_CHECKING:
    from pytest_perfgate.measure.context import MeasureContext
    from pytest_perfgate.measure.seeding import Seeding
    from pytest_perfgate.measured import Measurement, Samples
    from pytest_perfgate.workloads.rounds import Rounds
    from pytest_perfgate.workloads.target import Target

Result = TypeVar("Result")


class PerfGate:
    """Measures what it is given; a test's second measurement needs a `name=`."""

    def __init__(self, nodeid: str, *, context: "MeasureContext | None") -> None:
        self._nodeid = nodeid
        self._context = context
        self._names: set[str | None] = set()
        self._recorded: dict[str, Samples] = {}
        self._own: Measurement | None = None
        self._looping: str | None = None
        self._rounds: Rounds | None = None
        self._loop: weakref.ref[Generator[int, None, None]] | None = None
        self._measured = 0
        self._closed = False
        self._seeding: Seeding | None = None
        self._seed(nodeid)

    def __call__(
        self,
        function: Callable[..., Result],
        /,
        *args: Any,  # noqa: ANN401 (whatever the function takes)
        name: str | None = None,
        **kwargs: Any,  # noqa: ANN401 (likewise)
    ) -> Result:
        """Measure any callable, and return what it returned last.

        Parameters
        ----------
        function : called with `args` and `kwargs`, once an iteration
        name : tells this measurement from others in the same test

        Raises
        ------
        UsageError
            Not callable, a coroutine or generator function, or the name is
            missing or taken.
        """
        from pytest_perfgate.workloads.call import check_callable, measure_call

        check_callable(function)
        target = self._claim(name)
        if self._context is None:
            return function(*args, **kwargs)
        measurement, result = measure_call(
            self._context, target, function, args, kwargs
        )
        self._file(self._context, measurement)
        return result  # type: ignore[return-value]  # the timed loop hands on what fn gave

    def inference(
        self,
        model: Callable[..., Result],
        *inputs: Any,  # noqa: ANN401 (whatever the model takes)
        batch_size: int | None = None,
        tokens: int | None = None,
        name: str | None = None,
    ) -> Result:
        """Measure a forward pass under inference mode; returns the last output.

        Parameters
        ----------
        model : a torch module or any callable
        batch_size : items an iteration works on: gives items a second
        tokens : tokens an iteration works on: gives tokens a second
        """
        from pytest_perfgate.workloads.call import check_callable
        from pytest_perfgate.workloads.inference import inference_mode

        check_callable(model)
        target = self._claim(name)
        if self._context is None:
            with inference_mode():
                return model(*inputs)
        from pytest_perfgate.workloads.inference import Work, measure_inference

        work = Work(batch_size=batch_size, tokens=tokens)
        measurement, result = measure_inference(
            self._context, target, model, inputs, work
        )
        self._file(self._context, measurement)
        return result  # type: ignore[return-value]  # the timed loop hands on what fn gave

    def training_step(  # noqa: PLR0913 (the parts of a training step)
        self,
        model: Any,  # noqa: ANN401 (torch's objects; torch may not be there)
        optimizer: Any,  # noqa: ANN401 (torch's)
        loss_fn: Callable[..., Any],
        batch: Any,  # noqa: ANN401 (whatever the model takes)
        *,
        autocast: Any = None,  # noqa: ANN401 (torch's)
        scaler: Any = None,  # noqa: ANN401 (torch's)
        clip: float | None = None,
        batch_size: int | None = None,
        loader: Any = None,  # noqa: ANN401 (an iterable, or a function that gives one)
        name: str | None = None,
    ) -> Any:  # noqa: ANN401 (a tensor)
        """Measure a training step and its phases; returns the last loss.

        Parameters
        ----------
        batch : a pair (inputs, target) for `loss_fn(model(inputs), target)`; or
            a mapping or tensor without target for `loss_fn(model(batch))`.
            Inputs in a tuple or list are positional, in a mapping keywords.
        autocast : dtype of the forward pass and the loss, or None
        scaler : a gradient scaler, or None
        clip : largest norm of all gradients, or None
        batch_size : items in the batch: gives items a second
        loader : brings batches like `batch`, and can be gone through more than once
            (a DataLoader, a list), or a function that gives a fresh one: gives the
            share of data loading, once the step on `batch` is timed

        Raises
        ------
        BadSample
            The loss is not finite at the end.
        UsageError
            The loader can be gone through only once, or is none.
        """
        from pytest_perfgate.workloads.loading import Loader
        from pytest_perfgate.workloads.training import Step, measure_training, run_step

        step = Step(
            model=model,
            optimizer=optimizer,
            loss_fn=loss_fn,
            batch=batch,
            autocast=autocast,
            scaler=scaler,
            clip=clip,
        )
        source = None if loader is None else Loader(given=loader)
        target = self._claim(name)
        if self._context is None:
            return run_step(step, lambda _: None)
        measurement, loss = measure_training(
            self._context, target, step, batch_size=batch_size, loader=source
        )
        self._file(self._context, measurement)
        return loss

    def generation(
        self,
        stream: Callable[[Any], Iterable[Any]],
        prompts: Iterable[Any],
        name: str | None = None,
    ) -> list[list[int]]:
        """Measure generation; returns the last reply to each prompt as token ids.

        Parameters
        ----------
        stream : called with a prompt, yields token ids or flat chunks of them
        prompts : gone through in order, once an iteration

        Raises
        ------
        BadSample
            A stream gave no token.
        """
        from pytest_perfgate.workloads.generation import (
            check_prompts,
            consume,
            measure_generation,
        )

        listed = check_prompts(prompts)
        target = self._claim(name)
        if self._context is None:
            return [consume(stream, prompt) for prompt in listed]
        measurement, replies = measure_generation(self._context, target, stream, listed)
        self._file(self._context, measurement)
        return replies

    def iterations(self, name: str | None = None) -> Iterator[int]:
        """Lend the test its loop: warm-up and measured rounds alike, numbered.

        The loop must be gone through to its end; leaving it early measures
        nothing, and `close` says so. When all is timed, some more rounds are
        lent to count what one does; leaving it there costs the counts alone.
        """
        target = self._claim(name)
        if self._context is None:
            return iter(range(1))
        from pytest_perfgate.workloads.rounds import Rounds

        self._looping = f"iterations({'' if name is None else repr(name)})"
        context = self._context
        self._rounds = Rounds(
            context, target, done=lambda found: self._end_loop(context, found)
        )
        loop = iter(self._rounds)
        # who holds it is the test alone: leaving the loop is to close it at once
        self._loop = weakref.ref(loop)
        return loop

    def _end_loop(self, context: "MeasureContext", measurement: "Measurement") -> None:
        self._looping = self._rounds = self._loop = None
        self._file(context, measurement)

    def _settle_loop(self) -> None:
        """Hand over a loop that was left when all that is timed had been timed."""
        if self._rounds is not None and self._rounds.is_timed:
            self._close_loop()
            self._rounds.finish()

    def _close_loop(self) -> None:
        """Put back what a loop has changed, if it was left and is still held."""
        loop = None if self._loop is None else self._loop()
        if loop is not None:
            loop.close()

    def stage(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Time a part of a round as the metric `stage:NAME`.

        Raises
        ------
        UsageError
            Not inside a loop over `iterations()`.
        """
        if self._rounds is not None:  # first: this is within what is timed
            return self._rounds.stage(name)
        self._check_name(name)
        if self._context is None:
            return contextlib.nullcontext()
        raise UsageError(
            f"{self._nodeid}: stage({name!r}) outside of a loop; write "
            "for _ in perfgate.iterations(): around it"
        )

    def record(
        self,
        name: str,
        samples: Iterable[float],
        *,
        unit: str,
        better: str,
        exact: bool = False,
    ) -> None:
        """Hand over numbers measured elsewhere, as one more metric of this test.

        Parameters
        ----------
        samples : finite numbers, at least one
        unit : `s`, `B`, `1`, or any other
        better : `lower` or `higher`
        exact : a deterministic count: compared exactly

        Raises
        ------
        BadSample
            There is no sample, or one is not a finite number.
        UsageError
            The name is taken, or `better` is neither.
        """
        self._check_name(name)
        if name in self._recorded:
            raise UsageError(
                f"{self._nodeid}: record({name!r}) twice; give every sample at "
                "once, or the second series its own name"
            )
        from pytest_perfgate.workloads.record import recorded

        self._recorded[name] = recorded(
            name, samples, unit=unit, better=better, exact=exact
        )
        if self._context is not None and self._context.slowdown:
            self._context.note(
                f"{self._nodeid}: the slowdown cannot reach what record({name!r}) "
                "was given"
            )

    def close(self, *, complete: bool = True) -> None:
        """Restore what was changed and hand over what was kept to the end.

        A second call does nothing more.

        Parameters
        ----------
        complete : the body ran to its end; if not, nothing is handed over, and
            nothing said about what is missing

        Raises
        ------
        NothingMeasured
            Measuring was on, and the body measured nothing or left its loop.
        """
        if self._seeding is not None:
            self._seeding.restore()
        self._close_loop()
        if self._context is None or self._closed or not complete:
            return
        self._closed = True
        self._settle_loop()
        if self._looping is not None:
            raise NothingMeasured(
                f"{self._nodeid}: the loop over {self._looping} was left early; "
                "let it run to its end (no break, no return), or use perfgate(fn)"
            )
        if not self._measured and not self._recorded:
            raise NothingMeasured(
                f"{self._nodeid}: names the fixture perfgate and measured nothing; "
                "call perfgate(fn), or remove the fixture from the test"
            )
        self._hand_over(self._context)

    def abandon(self, error: BaseException) -> None:
        """Put back what a loop has changed, whose body raised.

        Where that was in a round that is only counted, the error is told so.
        """
        self._close_loop()
        if self._rounds is not None and self._rounds.is_timed:
            error.add_note(
                f"perfgate: raised in a round of {self._looping} that is counted, after "
                "all timed ones; @pytest.mark.perfgate(counts=False) makes no such rounds"
            )

    def _hand_over(self, context: "MeasureContext") -> None:
        from pytest_perfgate.measured import HOT
        from pytest_perfgate.workloads.record import record_only, with_records

        target = self._target(None)
        if self._own is not None:
            context.emit(with_records(self._own, self._recorded))
        elif self._recorded:
            asked = [f"cache={context.cache!r}"] if context.cache != HOT else []
            asked += ["hide_launch=True"] if context.hide_launch else []
            for said in asked:
                context.note(
                    f"{self._nodeid}: {said} cannot reach what record(…) was given"
                )
            context.emit(record_only(context, target, self._recorded))

    # -- names

    def _claim(self, name: str | None) -> "Target":
        """Take a name for a measurement, and seed for it.

        Raises
        ------
        UsageError
            It is missing where a test measures twice, taken, or no name.
        """
        if name is not None:
            self._check_name(name)
        self._settle_loop()
        if self._looping is not None:
            raise UsageError(
                f"{self._nodeid}: a measurement inside {self._looping}, whose loop "
                "has not ended; finish the loop first"
            )
        if name in self._names:
            raise UsageError(
                f"{self._nodeid}: a second measurement "
                + (
                    "needs a name; write name='…', so that its numbers have an id"
                    if name is None
                    else f"named {name!r}; give each its own name"
                )
            )
        self._names.add(name)
        target = self._target(name)
        self._seed(target.benchmark)
        if self._context is not None:
            self._context.breaks.open()
        return target

    def _target(self, name: str | None) -> "Target":
        from pytest_perfgate.workloads.target import Target

        benchmark = self._nodeid if name is None else f"{self._nodeid}::{name}"
        return Target(nodeid=self._nodeid, benchmark=benchmark)

    def _check_name(self, name: str) -> None:
        if not name.strip() or not name.isprintable():
            raise UsageError(f"{self._nodeid}: {name!r} is no name; use printable text")

    def _seed(self, benchmark: str) -> None:
        if self._context is None:
            return
        from pytest_perfgate.measure.seeding import Seeding

        self._seeding = self._seeding or Seeding()
        self._seeding.apply(self._context.seed, benchmark)

    def _file(self, context: "MeasureContext", measurement: "Measurement") -> None:
        """Hand a named measurement over; the test's own waits for records."""
        self._measured += 1
        if measurement.benchmark == self._nodeid:
            self._own = measurement
        else:
            context.emit(measurement)
