"""`Fields`: the fields of a request, taken one by one and checked; what is left over is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import nearest
from .errors import ApiError, invalid


class Fields:
    """What a JSON object has. Each is asked for by name and type; null is as good as absent.

    `where` stands before names in messages. All methods raise `ApiError` that names the field.
    """

    def __init__(self, given: Mapping[str, Any], where: str = "") -> None:
        self._given = {name: value for name, value in given.items() if value is not None}
        self._where = where
        self._known: list[str] = []

    def take(self, name: str) -> Any:
        """The value as it is; None where there is none."""
        self._known.append(name)
        return self._given.pop(name, None)

    def peek(self, name: str, default: Any = None) -> Any:
        """The value as it is, which may be taken later."""
        return self._given.get(name, default)

    def wrong(self, name: str, wanted: str, value: Any) -> ApiError:
        """An error that says what a field wants."""
        if value is None:
            return invalid(f"{self.path(name)} is missing: it must be {wanted}", self.path(name), "missing_field")
        return invalid(f"{self.path(name)} must be {wanted}, not {shown(value)}", self.path(name))

    def path(self, name: str) -> str:
        """The name as a client finds it in what it sent."""
        return f"{self._where}{name}"

    def text(self, name: str) -> str | None:
        """A string, or None."""
        value = self.take(name)
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(name, "a string", value)

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        raise self.wrong(name, "true or false", value)

    def whole(self, name: str, low: int, high: int) -> int | None:
        """A whole number in a range, or None."""
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():  # what some languages send for 1
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise self.wrong(name, f"a whole number from {low} to {high}", value)

    def number(self, name: str, low: float, high: float) -> float | None:
        """A number in a range, or None."""
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high:
            return float(value)
        raise self.wrong(name, f"a number from {low:g} to {high:g}", value)

    def choice(self, name: str, known: Sequence[str], default: str | None = None) -> str | None:
        """One of several words."""
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, str) and value in known:
            return value
        raise self.wrong(name, f"one of {', '.join(known)}", value)

    def mapping(self, name: str) -> dict[str, Any] | None:
        """An object, or None."""
        value = self.take(name)
        if value is None or isinstance(value, dict):
            return value
        raise self.wrong(name, "an object", value)

    def inner(self, name: str) -> Fields | None:
        """An object's own fields, or None."""
        value = self.mapping(name)
        return None if value is None else Fields(value, f"{self.path(name)}.")

    def ignore(self, *names: str) -> None:
        """Fields that change nothing here, whatever they hold."""
        for name in names:
            self.take(name)

    def only(self, name: str, *allowed: Any) -> None:
        """A field of which we do nothing but what is done anyway: any other value is an error."""
        value = self.take(name)
        if value is not None and not any(type(value) is type(one) and value == one for one in allowed):
            raise invalid(
                f"{self.path(name)}={shown(value)} is not supported; leave it out", self.path(name), "unsupported_value"
            )

    def finish(self) -> None:
        """Raise for the first field that nobody asked for."""
        for name in self._given:
            hint = nearest(name, self._known) or f"; known: {', '.join(self._known)}"
            raise invalid(f"unknown field {shown(self.path(name))}{hint}", self.path(name)[:200], "unknown_field")


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = ascii(value) if isinstance(value, (str, int, float, bool)) else f"{type(value).__name__} {value!a}"
    return text if len(text) <= 80 else f"{text[:77]}..."
