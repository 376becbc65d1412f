"""Filters over metadata, such as  year >= 2020 and (lang = "en" or not draft = true)  and  topic in ("law", "tax").

A filter is read into a small tree, which each segment turns into an SQL condition with parameters: no text of a user's
reaches SQL. A comparison holds only for values of the same kind, so that a year given as text is not "greater" than
2020; a document without the field is in no comparison.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from repconc.errors import RepconcError

TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])
  | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<operator><=|>=|!=|==|=|<|>|\(|\)|,)
  | (?P<word>[^\W\d][\w.\-]*)
    )""",
    re.VERBOSE,
)
COMPARISONS = {"=": "=", "==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
WORDS = {"true": True, "false": False}
DEEPEST = 50
LONGEST, WORDS_AT_MOST = 100_000, 600  # what SQLite can hold in one expression


@dataclass(frozen=True)
class Compare:
    """field operator value"""

    field: str
    operator: str
    value: str | int | float


@dataclass(frozen=True)
class OneOf:
    """field in (...)"""

    field: str
    values: tuple[str | int | float, ...]


@dataclass(frozen=True)
class Not:
    """What does not hold."""

    part: "Filter"


@dataclass(frozen=True)
class Both:
    """and, or"""

    word: str
    parts: tuple["Filter", ...]


Filter = Compare | OneOf | Not | Both


def parse_filter(text: str) -> Filter:
    """Read a filter; anything that is not one is refused with the place where it stops making sense."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RepconcError("The filter holds half of a character; mend it.") from error
    parser = _Parser(text)
    found = parser.any_of(0)
    parser.end()
    return found


def fields_of(tree: Filter) -> set[str]:
    match tree:
        case Compare(field=field) | OneOf(field=field):
            return {field}
        case Not(part=part):
            return fields_of(part)
        case Both(parts=parts):
            return set().union(*map(fields_of, parts))


def condition_of(tree: Filter, columns: Mapping[str, str]) -> tuple[str, list[Any]]:
    """An SQL condition and its parameters. columns: the column of each field; a field without one matches nothing."""
    match tree:
        case Compare(field=field, operator=operator, value=value):
            if field not in columns:
                return "0", []
            kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
            return f"(typeof({columns[field]}) IN {kinds} AND {columns[field]} {operator} ?)", [value]
        case OneOf(field=field, values=choices):
            if field not in columns:
                return "0", []
            # Texts and numbers are never equal in SQL, so that kinds need no word here.
            return f"({columns[field]} IS NOT NULL AND {columns[field]} IN ({', '.join('?' * len(choices))}))", [
                *choices
            ]
        case Not(part=part):
            inner, values = condition_of(part, columns)
            return f"NOT {inner}", values
        case Both(word=word, parts=parts):
            conditions = [condition_of(part, columns) for part in parts]
            joined = f" {word} ".join(condition for condition, _ in conditions)
            return f"({joined})", [value for _, values in conditions for value in values]


class _Parser:
    """Recursive descent: or, and, not, comparison."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens, place = text, list[tuple[str, str, int]](), 0
        text = text.rstrip()
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None or match.lastgroup is None:
                raise self._refusal(place)
            self._tokens.append((match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            place = match.end()
        if len(text) > LONGEST or sum(kind == "word" for kind, *_ in self._tokens) > WORDS_AT_MOST:
            raise RepconcError(
                f"The filter is longer than {LONGEST:,} characters or {WORDS_AT_MOST} words; shorten it."
            )
        self._next = 0

    def any_of(self, depth: int) -> Filter:
        return self._joined("or", self._all_of, depth)

    def end(self) -> None:
        if self._next < len(self._tokens):
            raise self._refusal(self._tokens[self._next][2])

    def _all_of(self, depth: int) -> Filter:
        return self._joined("and", self._one, depth)

    def _joined(self, word: str, part: Any, depth: int) -> Filter:
        parts = [part(depth)]
        while self._take("word", word):
            parts.append(part(depth))
        return parts[0] if len(parts) == 1 else Both(word.upper(), tuple(parts))

    def _one(self, depth: int) -> Filter:
        if depth > DEEPEST:
            raise RepconcError(f"The filter is nested more than {DEEPEST} deep; write it flatter.")
        if self._take("word", "not"):
            return Not(self._one(depth + 1))
        if self._take("operator", "("):
            inner = self.any_of(depth + 1)
            self._need("operator", ")")
            return inner
        field = self._name()
        if self._take("word", "in"):
            self._need("operator", "(")
            choices = [self._value()]
            while self._take("operator", ","):
                choices.append(self._value())
            self._need("operator", ")")
            return OneOf(field, tuple(choices))
        operator = self._need("operator")
        if operator not in COMPARISONS:
            raise self._refusal(self._tokens[self._next - 1][2])
        return Compare(field, COMPARISONS[operator], self._value())

    def _name(self) -> str:
        """A field: a word, or any text in double quotes."""
        if self._next < len(self._tokens) and self._tokens[self._next][0] == "string":
            return _unquoted(self._need("string"))
        return self._need("word")

    def _value(self) -> str | int | float:
        kind, text, place = self._tokens[self._next] if self._next < len(self._tokens) else ("", "", len(self._text))
        self._next += 1
        if kind == "string":
            return _unquoted(text)
        if kind == "number":
            whole = int(text) if re.fullmatch(r"[-+]?\d{1,19}", text) else None
            return whole if whole is not None and -(2**63) <= whole < 2**63 else float(text)
        if kind == "word" and text.lower() in WORDS:
            return WORDS[text.lower()]
        raise self._refusal(place)

    def _take(self, kind: str, text: str) -> bool:
        here = self._next < len(self._tokens) and self._tokens[self._next][:2]
        if not here or here[0] != kind or here[1].lower() != text:
            return False
        self._next += 1
        return True

    def _need(self, kind: str, text: str | None = None) -> str:
        if self._next >= len(self._tokens):
            raise self._refusal(len(self._text))
        found, content, place = self._tokens[self._next]
        if found != kind or (text is not None and content != text):
            raise self._refusal(place)
        self._next += 1
        return content

    def _refusal(self, place: int) -> RepconcError:
        return RepconcError(
            f"The filter {self._text!r} cannot be read at {self._text[place : place + 20]!r} (character {place + 1}); "
            'write it like: year >= 2020 and lang = "en"'
        )


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
