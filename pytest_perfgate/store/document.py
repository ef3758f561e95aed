"""What both kinds of file have in common: version, producer, refusals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pytest_perfgate import __version__
from pytest_perfgate.errors import BaselineCorrupt, SchemaTooNew
from pytest_perfgate.store.fields import Json, Node, parse
from pytest_perfgate.store.layout import lines_of
from pytest_perfgate.store.migrations import Step, migrate

_PACKAGE = "pytest-perfgate"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """One kind of file: how its body is written, read and brought up to date."""

    name: str
    version: int
    steps: Mapping[int, Step]
    encode: Callable[[T], Json]
    decode: Callable[[Mapping[str, Node]], T]
    body: tuple[str, ...]
    """The keys that must be there beside `schema_version` and `producer`."""
    optional: tuple[str, ...] = ()
    way_out: str
    """What to do about a file that cannot be used."""

    def text(self, value: T) -> str:
        """Return the whole text of a file."""
        head = {
            "schema_version": self.version,
            "producer": {"name": _PACKAGE, "version": __version__},
        }
        return lines_of({**head, **self.encode(value)})

    def read(self, data: bytes | str, *, source: str) -> T:
        """Read the whole text of a file; `source` names it in messages.

        Raises
        ------
        BaselineCorrupt
            With file, path, value and way out, for whatever is not as it must be.
        SchemaTooNew
            With the version of this package that is needed.
        """
        try:
            tree = self._current(parse(data), source)
            return self.decode(self._fields(tree))
        except BaselineCorrupt as error:
            message = f"{source} is no {self.name} that can be used: {error}"
            raise BaselineCorrupt(f"{message}; {self.way_out}") from error

    def _current(self, tree: object, source: str) -> Json:
        root = Node(tree)
        members = root.members()
        if "schema_version" not in members:
            raise root.corrupt("the key 'schema_version' is missing")
        version = members["schema_version"].integer(minimum=1)
        producer = _producer_version(members)
        if version > self.version:
            needed = f"at least {producer}" if producer else "a newer version"
            raise SchemaTooNew(
                f"{source} has schema_version {version}, and this is {_PACKAGE} "
                f"{__version__}, which reads {self.name}s up to {self.version}; "
                f"upgrade {_PACKAGE} to {needed}"
            )
        json = {key: member.value for key, member in members.items()}
        return migrate(json, version=version, current=self.version, steps=self.steps)

    def _fields(self, tree: Json) -> Mapping[str, Node]:
        root = Node(tree)
        required = ("schema_version", "producer", *self.body)
        fields = root.fields(*required, optional=self.optional)
        producer = fields["producer"].fields("name", "version")
        producer["name"].string()
        producer["version"].string()
        return fields


def _producer_version(members: Mapping[str, Node]) -> str | None:
    """Return the version that wrote a file, as far as a foreign file has one."""
    producer = members["producer"].value if "producer" in members else None
    version = producer.get("version") if isinstance(producer, dict) else None
    return version if isinstance(version, str) else None
