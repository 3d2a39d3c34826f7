"""`compile_template`: a chat template as a function that can neither run away nor reach out.

Jinja's immutable sandbox decides what may be called; on top of it only the attributes in the table below exist, only
the filters of `template_filters` are known, and all work is paid for (`template_budget`). Nothing is computed while
compiling, so a hostile constant costs nothing before the budget holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import BlockReference, LoopContext, Macro, TemplateReference
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace

from ..errors import FormatError, HalfbyteError, RequestError, UnsupportedError
from .template_budget import BUDGET, MAX_DEPTH, Budget, charge, measure, runaway, size, spend
from .template_filters import FILTERS, FUNCTIONS, TESTS, paid_replace
from .template_rewrite import constants, rewrite
from .template_values import binary, emit

MAX_SOURCE = 1 << 17

_STR = (
    *("capitalize", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal", "isdigit", "islower"),
    *("isnumeric", "isspace", "istitle", "isupper", "join", "lower", "lstrip", "partition", "removeprefix"),
    *("removesuffix", "replace", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines"),
    *("startswith", "strip", "swapcase", "title", "upper"),
)
_LOOP = ("cycle", "depth", "depth0", "first", "index", "index0", "last", "length", "nextitem", "previtem")
_ATTRIBUTES: tuple[tuple[type, frozenset[str]], ...] = (
    (str, frozenset(_STR)),
    (dict, frozenset({"copy", "get", "items", "keys", "values"})),
    (list, frozenset({"copy", "count", "index"})),
    (tuple, frozenset({"count", "index"})),
    (LoopContext, frozenset({*_LOOP, "revindex", "revindex0"})),
    (Cycler, frozenset({"current", "next", "reset"})),
    (Macro, frozenset({"arguments", "caller", "catch_kwargs", "catch_varargs", "name"})),
)
_NAMED_BY_TEMPLATE = (Namespace, TemplateReference)
_CALLABLE = (Macro, LoopContext, BlockReference, Cycler, Joiner)


class _Generation(Extension):
    """`{% generation %}` marks what a model wrote, for training; here it is only looked through."""

    tags = {"generation"}  # noqa: RUF012 - jinja wants it so

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The statements between the tags."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            cache_size=0,
            extensions=["jinja2.ext.loopcontrols", _Generation],
        )
        self.filters = dict(FILTERS)
        self.tests = dict(TESTS)
        self.globals = dict(FUNCTIONS)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if not super().is_safe_attribute(obj, attr, value):
            return False
        for kind, names in _ATTRIBUTES:
            if isinstance(obj, kind):
                return attr in names
        return isinstance(obj, _NAMED_BY_TEMPLATE)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        binary(operator, left, right)
        return charge(self.binop_table[operator](left, right))

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        budget = BUDGET.get()
        budget.spend(1)
        budget.depth += 1
        if budget.depth > MAX_DEPTH:
            raise runaway(f"calls itself more than {MAX_DEPTH} deep")
        try:
            owner = getattr(__obj, "__self__", None)
            if isinstance(owner, str):
                return charge(_call_str(owner, __obj, args, kwargs))
            for value in (owner, *args) if isinstance(owner, (list, tuple)) else ():
                measure(value)
            if isinstance(owner, dict):
                spend(size(owner))
            return charge(super().call(__context, __obj, *args, **kwargs))
        finally:
            budget.depth -= 1


def _call_str(owner: str, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a string; its name has passed `is_safe_attribute`."""
    spend(len(owner))
    name = method.__name__
    if name == "replace":
        return paid_replace(owner, *args, **kwargs)
    if name == "join":
        items = charge(list(*args))
        spend(len(owner) * len(items))
        return owner.join(map(emit, items))
    return method(*args, **kwargs)


class CompiledTemplate:
    """`constants`: all strings in its expressions."""

    def __init__(self, source: str) -> None:
        """Raises `FormatError` for what is no template and `UnsupportedError` for what we do not offer one."""
        if len(source) > MAX_SOURCE:
            raise FormatError(f"the chat template is {len(source)} characters long; {MAX_SOURCE} is the most allowed")
        sandbox = _Sandbox()
        try:
            parsed = sandbox.parse(source)
            self.constants = constants(parsed)
            code = sandbox.compile(rewrite(parsed))
            self._template = jinja2.Template.from_code(sandbox, code, sandbox.globals)
        except jinja2.TemplateAssertionError as error:
            raise UnsupportedError(f"the chat template asks for something unknown: {error.message}") from error
        except jinja2.TemplateSyntaxError as error:
            raise FormatError(f"the chat template, line {error.lineno}: {error.message}") from error
        except (RecursionError, MemoryError, SyntaxError, ValueError) as error:
            raise FormatError(f"the chat template cannot be compiled: {error or type(error).__name__}") from error

    def render(self, variables: dict[str, Any], input_size: int) -> str:
        """The text. `input_size`: characters and items in `variables`, by which the work is limited."""
        token = BUDGET.set(Budget(input_size))
        try:
            return "".join(_pieces(self._template, variables))
        finally:
            BUDGET.reset(token)


def _pieces(template: jinja2.Template, variables: dict[str, Any]) -> Iterator[str]:
    try:
        yield from template.generate(**variables)
    except HalfbyteError:
        raise
    except jinja2.exceptions.SecurityError as error:
        raise FormatError(f"the chat template reaches for what it may not have: {error}") from error
    except jinja2.UndefinedError as error:
        raise RequestError(f"the chat template misses something in the messages: {error}") from error
    except jinja2.TemplateRuntimeError as error:
        raise UnsupportedError(f"the chat template asks for something unknown: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise runaway("goes too deep or grows too large") from error
    except Exception as error:
        raise RequestError(f"the chat template fails on these messages: {type(error).__name__}: {error}") from error
