"""Whose turn it is: as a pure machine, and over sockets with both ends in one process."""

import threading

import pytest

from pytest_perfgate.campaign.hub import Hub, Side, Turns
from pytest_perfgate.errors import ProtocolError
from pytest_perfgate.measure.context import Agreement
from pytest_perfgate.turns import TurnClient

BASE, CANDIDATE = Side.BASE, Side.CANDIDATE


def test_nobody_goes_while_the_other_is_busy():
    turns = Turns(leader=BASE)
    turns.ask(BASE, (-2, 0, 0))
    assert turns.next() is None  # the candidate has not started yet
    turns.ask(CANDIDATE, (-2, 0, 0))
    assert turns.next() is BASE
    assert turns.next() is None


def test_who_is_behind_goes_first():
    turns = Turns(leader=BASE)
    turns.ask(BASE, (3, 0, 1))
    turns.ask(CANDIDATE, (2, 0, 7))
    assert turns.next() is CANDIDATE
    turns.ask(CANDIDATE, (3, -1, 0))
    assert turns.next() is CANDIDATE


@pytest.mark.parametrize("leader", list(Side))
def test_turns_alternate_abba(leader):
    turns = Turns(leader=leader)
    place = dict.fromkeys(Side, 1)
    for side in Side:
        turns.ask(side, (0, 0, 1))
    seen = []
    while min(place.values()) <= 6:
        side = turns.next()
        seen.append(side)
        place[side] += 1
        turns.ask(side, (0, 0, place[side]))
    a, b = leader, leader.other
    assert seen[:12] == [a, b, b, a, a, b, b, a, a, b, b, a]


def test_who_is_gone_is_waited_for_no_more():
    turns = Turns(leader=BASE)
    turns.ask(CANDIDATE, (5, 0, 1))
    turns.gone(BASE)
    assert turns.next() is CANDIDATE
    turns.gone(CANDIDATE)
    assert turns.next() is None


class Worker(threading.Thread):
    """A worker's end of the hub, in a thread that does what its script says."""

    def __init__(self, hub, side, script, order=("a", "b")):
        super().__init__(daemon=True)
        # a copy, as a process of its own would have
        self.client = TurnClient(hub._theirs[side].detach(), order)
        self.side = side
        self.script = script
        self.start()

    def run(self):
        self.script(self.client)
        self.client._lines.close()
        self.client._socket.close()


def serve(hub):
    """Hand turns over until both workers are gone."""
    import select

    while hub.sockets:
        ours = {ours: side for side, ours in hub.sockets.items()}
        readable, _, _ = select.select(list(ours), [], [], 30)
        assert readable, "nobody speaks: the hub is stuck"
        for one in readable:
            hub.listen(ours[one])
        hub.give()
    hub.close()


def measured(said, side, *, turns=3, die_after=None, agree=None):
    def script(client):
        client.hello()
        client.collected()
        client.arrive("a")
        found = client.begin("a")
        said.append((side, "begin", found))
        if found is None and agree:
            client.agree(agree)
        for turn in range(turns):
            client.turn()
            if turn == die_after:
                return
            said.append((side, "turn", turn))
        client.turn()
        client.arrive("b")
        said.append((side, "at", "b"))

    return script


def run_both(said, hub, **by_side):
    workers = [Worker(hub, side, by_side[side]) for side in Side]
    serve(hub)
    for worker in workers:
        worker.join(30)
        assert not worker.is_alive()
    return said


def test_two_workers_take_turns_and_agree():
    said, agreement = [], Agreement(iterations=9, warmup=4, per_turn=3)
    agreements = {}
    hub = Hub(CANDIDATE, agreements)
    scripts = {side: measured(said, side, agree=agreement) for side in Side}
    run_both(said, hub, **scripts)
    assert agreements == {"a": agreement}
    assert said[0] == (CANDIDATE, "begin", None)
    assert said[1] == (BASE, "begin", agreement)
    order = [side for side, what, _ in said if what == "turn"]
    c, b = CANDIDATE, BASE
    assert order == [c, b, b, c, c, b]


def test_a_later_pair_begins_with_what_was_agreed():
    said, agreement = [], Agreement(iterations=9, warmup=4, per_turn=3)
    hub = Hub(BASE, {"a": agreement})
    run_both(said, hub, **{side: measured(said, side) for side in Side})
    assert [found for _, what, found in said if what == "begin"] == [agreement] * 2


def test_the_other_comes_to_its_end_when_one_dies_in_its_turn():
    said = []
    hub = Hub(BASE, {})
    run_both(
        said,
        hub,
        base=measured(said, BASE, die_after=1),
        candidate=measured(said, CANDIDATE, turns=5),
    )
    done = [turn for side, what, turn in said if side is CANDIDATE and what == "turn"]
    assert done == [0, 1, 2, 3, 4]
    assert (CANDIDATE, "at", "b") in said
    assert (BASE, "at", "b") not in said


def test_a_side_with_one_turn_more_is_not_waited_for_at_the_next_benchmark():
    said = []
    base, candidate = measured(said, BASE, turns=2), measured(said, CANDIDATE, turns=3)
    run_both(said, Hub(BASE, {}), base=base, candidate=candidate)
    ends = [entry for entry in said if entry[1:] in {("turn", 2), ("at", "b")}]
    assert ends == [
        (CANDIDATE, "turn", 2),
        (BASE, "at", "b"),
        (CANDIDATE, "at", "b"),
    ]


def test_what_is_no_request_is_named():
    hub = Hub(BASE, {})
    hub._theirs[BASE].sendall(b"hello?\n")
    with pytest.raises(ProtocolError, match=r"base worker asked .* b'hello\?'"):
        hub.listen(BASE)
    hub.close()
