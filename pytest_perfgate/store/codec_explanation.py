"""Explanations to JSON and back: one entry a line."""

from pytest_perfgate.model import Clue, ClueKind, Explanation
from pytest_perfgate.store.codec import optional_number, present
from pytest_perfgate.store.fields import Json, Node


def encode_explanation(explanation: Explanation) -> list[Json]:
    return [_encode_clue(line) for line in explanation.lines]


def _encode_clue(clue: Clue) -> Json:
    return present(
        kind=clue.kind.value,
        text=clue.text,
        old=clue.old or None,
        new=clue.new or None,
        share=clue.share,
    )


def decode_explanation(node: Node | None) -> Explanation | None:
    """Decode the lines of an explanation; an absent one is None."""
    if node is None:
        return None
    lines = tuple(_decode_clue(item) for item in node.items())
    if not lines:
        raise node.refuse("one line or more")
    return Explanation(lines=lines)


def _decode_clue(node: Node) -> Clue:
    fields = node.fields("kind", "text", optional=("old", "new", "share"))
    return Clue(
        kind=fields["kind"].choice(ClueKind),
        text=fields["text"].string(),
        old=fields["old"].string() if "old" in fields else "",
        new=fields["new"].string() if "new" in fields else "",
        share=optional_number(fields, "share"),
    )
