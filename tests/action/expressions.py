"""The expressions of workflows, as far as ours use them; anything else raises."""

import re

TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>'(?:[^']|'')*')
    | (?P<number>-?\d+(?:\.\d+)?)
    | (?P<operator>&&|\|\||==|!=|!|\(|\)|,)
    | (?P<name>[A-Za-z_][\w-]*(?:\.[A-Za-z_*][\w-]*)*)
    )""",
    re.VERBOSE,
)
CONSTANTS = {"true": True, "false": False, "null": None}
STATUS = ("always", "success", "failure", "cancelled")
PLACE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


class Unknown(Exception):
    """Something that a real runner may know and we do not."""


def tokens(text):
    found, position = [], 0
    while text[position:].strip():
        match = TOKEN.match(text, position)
        if not match:
            raise Unknown(f"{text!r} at {text[position:]!r}")
        found.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return found


def is_true(value):
    return value not in (False, None, "", 0)


def as_text(value):
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def equal(one, other):
    """Compare like the runner: text without its case, unlike types as numbers."""
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    if type(one) is type(other):
        return one == other
    return number(one) == number(other)


def number(value):
    if value is None or value == "":
        return 0.0
    if isinstance(value, dict | list):
        return float("nan")
    try:
        return float(value)
    except ValueError:
        return float("nan")


class Parser:
    """One expression: || below && below comparison below !."""

    def __init__(self, text, context, status):
        self.tokens = tokens(text)
        self.text = text
        self.context = context
        self.status = status

    def value(self):
        result = self.either()
        if self.tokens:
            raise Unknown(f"{self.text!r}: {self.tokens[0][1]!r} is left over")
        return result

    def next_is(self, *operators):
        if self.tokens and self.tokens[0] in [("operator", one) for one in operators]:
            return self.tokens.pop(0)[1]
        return ""

    def either(self):
        result = self.both()
        while self.next_is("||"):
            other = self.both()
            result = result if is_true(result) else other
        return result

    def both(self):
        result = self.compared()
        while self.next_is("&&"):
            other = self.compared()
            result = other if is_true(result) else result
        return result

    def compared(self):
        result = self.negated()
        while operator := self.next_is("==", "!="):
            same = equal(result, self.negated())
            result = same if operator == "==" else not same
        return result

    def negated(self):
        if self.next_is("!"):
            return not is_true(self.negated())
        return self.single()

    def single(self):
        if self.next_is("("):
            result = self.either()
            self.expect(")")
            return result
        if not self.tokens:
            raise Unknown(f"{self.text!r} ends too early")
        kind, word = self.tokens.pop(0)
        if kind == "text":
            return word[1:-1].replace("''", "'")
        if kind == "number":
            return float(word) if "." in word else int(word)
        if kind != "name":
            raise Unknown(f"{self.text!r}: {word!r}")
        if self.next_is("("):
            return self.call(word)
        return CONSTANTS[word] if word in CONSTANTS else self.look_up(word)

    def expect(self, operator):
        if not self.next_is(operator):
            raise Unknown(f"{self.text!r}: {operator!r} is missing")

    def call(self, name):
        arguments = []
        while not self.next_is(")"):
            arguments.append(self.either())
            if not self.next_is(","):
                self.expect(")")
                break
        if name in STATUS and not arguments:
            return self.status[name]
        if name == "contains" and len(arguments) == 2:
            return as_text(arguments[1]).lower() in as_text(arguments[0]).lower()
        raise Unknown(f"{self.text!r}: {name}() with {len(arguments)} arguments")

    def look_up(self, path):
        first, *rest = path.split(".")
        if first not in self.context:
            raise Unknown(f"{self.text!r}: there is no {first!r} here")
        value = self.context[first]
        for name in rest:
            value = value.get(name) if isinstance(value, dict) else None
        return value


def evaluate(text, context, status):
    return Parser(text, context, status).value()


def filled(text, context):
    """Fill the places of a value that is no condition; those know no status."""
    whole = PLACE.fullmatch(str(text).strip())
    if whole:
        return as_text(evaluate(whole[1], context, {}))
    return PLACE.sub(lambda m: as_text(evaluate(m[1], context, {})), as_text(text))


def holds(condition, context, status):
    """Decide a condition: it asks for success unless it asks for a status itself."""
    text = str(condition).strip()
    whole = PLACE.fullmatch(text)
    text = whole[1] if whole else text
    value = evaluate(text, context, status)
    names = {word for kind, word in tokens(text) if kind == "name"}
    asks = names & set(STATUS)
    return is_true(value) and (bool(asks) or status["success"])
