"""Operator profiles to JSON and back: one line an operator."""

from collections.abc import Mapping

from pytest_perfgate.measured import OperatorUse, Profile
from pytest_perfgate.store.fields import Json, Node


def encode_profile(profile: Profile) -> Json:
    """Encode a profile; an operator is `[count, seconds]` under its name."""
    return {
        "operators": _encode_uses(profile.operators),
        "kernels": _encode_uses(profile.kernels),
        "operators_s": profile.operators_s,
        "kernels_s": profile.kernels_s,
    }


def _encode_uses(uses: Mapping[str, OperatorUse]) -> Json:
    return {name: [use.count, use.self_s] for name, use in uses.items()}


def decode_profile(node: Node | None) -> Profile | None:
    """Decode what `encode_profile` made; an absent one is None."""
    if node is None:
        return None
    fields = node.fields("operators", "kernels", "operators_s", "kernels_s")
    return Profile(
        operators=_decode_uses(fields["operators"]),
        kernels=_decode_uses(fields["kernels"]),
        operators_s=fields["operators_s"].number(minimum=0),
        kernels_s=fields["kernels_s"].number(minimum=0),
    )


def _decode_uses(node: Node) -> dict[str, OperatorUse]:
    return {name: _decode_use(member) for name, member in node.members().items()}


def _decode_use(node: Node) -> OperatorUse:
    items = node.items()
    if len(items) != 2:
        raise node.refuse("[count, seconds]")
    count, seconds = items
    return OperatorUse(count=count.integer(minimum=0), self_s=seconds.number(minimum=0))
