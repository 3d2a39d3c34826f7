"""`compile_template`: a chat template as a function that can neither run away nor reach out.

Jinja's immutable sandbox decides what may be called; on top of it only the attributes in the table below exist, only
the filters of `template_filters` are known, and all work is paid for (`template_budget`). Nothing is computed while
compiling, so a hostile constant costs nothing before the budget holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import LoopContext, Macro, TemplateReference
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Namespace

from ..errors import FormatError, HalfbyteError, RequestError, UnsupportedError
from .template_budget import BUDGET, MAX_DEPTH, Budget, charge, runaway
from .template_filters import FILTERS, FUNCTIONS, TESTS, format_braces
from .template_rewrite import constants, rewrite
from .template_values import binary, prepay

MAX_SOURCE = 1 << 17
_CALL_COST = 5

_STR = (
    *("capitalize", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal", "isdigit", "islower"),
    *("isnumeric", "isspace", "istitle", "isupper", "join", "lower", "lstrip", "partition", "removeprefix"),
    *("removesuffix", "replace", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines"),
    *("startswith", "strip", "swapcase", "title", "upper"),
)
_DICT = frozenset({"copy", "get", "items", "keys", "values"})
_LOOP = ("cycle", "depth", "depth0", "first", "index", "index0", "last", "length", "nextitem", "previtem")
_ATTRIBUTES: tuple[tuple[type, frozenset[str]], ...] = (
    (str, frozenset(_STR)),
    (dict, _DICT),
    (list, frozenset({"copy", "count", "index"})),
    (tuple, frozenset({"count", "index"})),
    (LoopContext, frozenset({*_LOOP, "revindex", "revindex0"})),
    (Cycler, frozenset({"current", "next", "reset"})),
    (Macro, frozenset({"arguments", "caller", "catch_kwargs", "catch_varargs", "name"})),
)
_NAMED_BY_TEMPLATE = (Namespace, TemplateReference)


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

    def getattr(self, obj: Any, attribute: str) -> Any:
        """An entry of a dict comes before a method that we do not offer: schemas have keys such as `update`."""
        if isinstance(obj, dict) and attribute in obj and attribute not in _DICT:
            return obj[attribute]
        return self._format_of(obj, attribute) or super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return self._format_of(obj, argument) or super().getitem(obj, argument)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Any:
        kind = type(obj).__name__
        raise jinja2.exceptions.SecurityError(f"{attribute!r} of a {kind} is out of a template's reach")

    def _format_of(self, obj: Any, name: Any) -> Any:
        # Jinja wraps these before it asks `is_safe_attribute`, and they pad to any width.
        if isinstance(obj, str) and name == "format":
            return partial(format_braces, str(obj))
        return self.unsafe_undefined(obj, name) if isinstance(obj, str) and name == "format_map" else None

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        budget = BUDGET.get()
        budget.spend(_CALL_COST)
        budget.depth += 1
        if budget.depth > MAX_DEPTH:
            raise runaway(f"calls itself more than {MAX_DEPTH} deep")
        try:
            args = prepay(getattr(__obj, "__self__", None), getattr(__obj, "__name__", ""), args)
            return charge(super().call(__context, __obj, *args, **kwargs))
        finally:
            budget.depth -= 1


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
            raise FormatError(f"the chat template cannot be compiled: {str(error) or 'too deep'}") from error

    def render(self, variables: dict[str, Any], input_size: int, marks: Mapping[str, str]) -> str:
        """The text. `input_size`: characters and items in `variables`, by which the work is limited."""
        token = BUDGET.set(Budget(input_size, marks))
        try:
            return "".join(_pieces(self._template, variables))
        finally:
            BUDGET.reset(token)


def free_variables(source: str) -> set[str]:
    """Names that a template, known to compile, reads and that its caller may give it."""
    return meta.find_undeclared_variables(_Sandbox().parse(source))


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
