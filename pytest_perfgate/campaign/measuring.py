"""The measuring part of a session: the machine, the base tree, the campaign."""

import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from pytest_perfgate.campaign import machine, progress
from pytest_perfgate.campaign.attempts import PastAttempts
from pytest_perfgate.campaign.base import Base
from pytest_perfgate.campaign.doors import Doors
from pytest_perfgate.campaign.foresight import needed_bytes
from pytest_perfgate.campaign.launch import Invocation, WorkerLauncher
from pytest_perfgate.campaign.ledger import Ledger
from pytest_perfgate.campaign.manager import Campaign
from pytest_perfgate.campaign.pair_launch import PairLauncher
from pytest_perfgate.campaign.shelf import Shelf
from pytest_perfgate.campaign.verdicts import Verdicts
from pytest_perfgate.settings import ItemSettings, Settings
from pytest_perfgate.store import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A collected benchmark."""

    nodeid: str
    settings: ItemSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a session knows before anything is measured."""

    planned: Sequence[Planned]
    device: str
    fake: str | None
    """The script of the fake device, in our own end-to-end tests."""
    ledger: Ledger
    shelf: Shelf
    verdicts: Verdicts
    past: PastAttempts
    folder: RunFolder


class Measuring:
    """Makes the runs of a session, with the device held and the base at hand."""

    def __init__(
        self, config: pytest.Config, settings: Settings, session: Session
    ) -> None:
        self._config = config
        self._settings = settings
        self._session = session
        self.campaign: Campaign | None = None
        self.base = Base(config, settings, [own.nodeid for own in session.planned])

    @property
    def out_of_time(self) -> bool:
        return bool(self.campaign and self.campaign.out_of_time)

    def machine(self) -> AbstractContextManager[bool]:
        """Hold the device until all is measured; gives whether it is fit."""
        needed = needed_bytes(
            [own.nodeid for own in self._session.planned], self._session.shelf
        )
        if self._session.fake:
            return machine.held_fake(
                Path(self._session.fake), self._session.ledger, needed_bytes=needed
            )
        return machine.held(
            self._session.device,
            self._session.ledger,
            say=self._say,
            lock_clocks=self._settings.lock_clocks,
            patience_s=self._settings.max_total_s,
            needed_bytes=needed,
        )

    def _say(self, text: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"perfgate: {text}")

    def run(self) -> None:
        """Make the runs and judge them, while the machine is ours."""
        self._session.past.begin()
        self._note_what_governs()
        self.campaign, launcher = self._make_campaign()
        with self.base:
            self._conduct(self.campaign, launcher)

    def _conduct(self, campaign: Campaign, launcher: WorkerLauncher) -> None:
        if self._settings.update:
            campaign.record()
            self._session.verdicts.weigh_the_suite()
            return
        self.base.check()  # before anything is measured for nothing
        if self._settings.paired:
            entries = list(self._session.ledger.entries.values())
            campaign.pair_up(self._open_base(launcher), entries)
        campaign.measure(self._settings.looks)
        self._session.verdicts.weigh_the_suite()
        confirming = self._settings.pairing.confirm is not None
        campaign.confirm(partial(self._open_base, launcher) if confirming else None)

    def _open_base(self, launcher: WorkerLauncher) -> PairLauncher:
        """Check the base tree out, and return what starts pairs."""
        tree = self.base.open()
        self._session.verdicts.reference.in_base = self.base.has
        for note in tree.notes:
            self._session.ledger.note(note)
        return PairLauncher(
            launcher,
            tree,
            in_turns=self._settings.pairing.interleave == "block",
            note=self._session.ledger.note,
        )

    def _note_what_governs(self) -> None:
        """Say where a stored plan outweighs what the user says."""
        overruled = [
            own.nodeid
            for own in self._session.planned
            if not all(
                map(
                    own.settings.agrees_with,
                    self._session.shelf.plans(own.nodeid).values(),
                )
            )
        ]
        if overruled and not self._settings.update:
            others = f" and {len(overruled) - 1} more" if overruled[1:] else ""
            self._session.ledger.note(
                f"the plans stored with the baselines of {overruled[0]}{others} say "
                "other iterations, warm-up or inner loop than option or marker do, and "
                "they govern; --perfgate-update records new ones"
            )

    def _make_campaign(self) -> tuple[Campaign, WorkerLauncher]:
        stream = progress.terminal_stream(verbosity=self._config.get_verbosity())
        invocation = Invocation(
            arguments=tuple(map(str, self._config.invocation_params.args)),
            start=self._config.invocation_params.dir,
            device=self._session.device,
            cache=self._session.folder.path / "cache"
            if self._config.pluginmanager.hasplugin("cacheprovider")
            else None,
            timeouts={
                own.nodeid: own.settings.timeout_s for own in self._session.planned
            },
        )
        launcher = WorkerLauncher(self._session.folder, invocation)
        campaign = Campaign(
            self._session.ledger,
            Doors(
                launcher=launcher,
                judge=self._session.verdicts,
                progress=progress.TerminalProgress(stream, width=_columns()),
                # what is fake recovers at once
                sleep=_no_time_passes if self._session.fake else time.sleep,
            ),
            seed=self._settings.seed,
            max_total_s=self._settings.max_total_s,
        )
        return campaign, launcher


def _no_time_passes(seconds: float) -> None:
    """Wait on a clock that is not real."""


def _columns() -> int:
    return shutil.get_terminal_size().columns
