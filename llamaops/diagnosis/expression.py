"""Small expressions over facts: comparison, arithmetic, `and`, `or`, `not`; nothing else.

A name that is not known makes the whole expression false, never an error: what is not known proves
nothing. `known(name)` asks for that.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from functools import cache
from typing import Any

Value = str | int | float | bool

_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


class _NotKnownError(Exception):
    """A name is not known."""


@cache
def parse(text: str) -> ast.expr:
    """Parse an expression.

    Raises: ValueError with what is wrong.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"not an expression: {text}") from error
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ValueError(f"{type(node).__name__} is not allowed in {text}")  # noqa: TRY004 - of the rule
    return tree


_ALLOWED = (
    ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Name, ast.Constant, ast.And, ast.Or, ast.Not,
    ast.Load, ast.USub, ast.Call, *_OPERATORS,
)  # fmt: skip


def holds(text: str, facts: Mapping[str, Value]) -> bool:
    """Say whether an expression is true of the facts."""
    try:
        return bool(_value(parse(text), facts))
    except (_NotKnownError, TypeError, ZeroDivisionError, OverflowError):
        return False


def names(text: str) -> set[str]:
    """Return the names that an expression uses."""
    return {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)} - {"known"}


def _value(node: ast.expr, facts: Mapping[str, Value]) -> Any:  # noqa: ANN401, PLR0911 - numbers, texts, truths; one line per kind of node
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            if name not in facts:
                raise _NotKnownError
            return number(facts[name])
        case ast.Call(ast.Name("known"), [ast.Name(name)], []):
            return name in facts
        case ast.UnaryOp(ast.Not(), operand):
            return not _value(operand, facts)
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, facts)
        case ast.BoolOp(ast.And(), values):
            return all(_value(value, facts) for value in values)
        case ast.BoolOp(_, values):
            return any(_truth(value, facts) for value in values)
        case ast.BinOp(left, operation, right):
            return _OPERATORS[type(operation)](_value(left, facts), _value(right, facts))
        case ast.Compare(left, operations, comparators):
            return _compare(_value(left, facts), operations, [_value(c, facts) for c in comparators])
        case _:
            raise _NotKnownError


def _truth(node: ast.expr, facts: Mapping[str, Value]) -> bool:
    try:
        return bool(_value(node, facts))
    except (_NotKnownError, TypeError):
        return False


def _compare(left: Any, operations: list[ast.cmpop], values: list[Any]) -> bool:  # noqa: ANN401
    for operation, value in zip(operations, values, strict=True):
        if not _OPERATORS[type(operation)](left, value):
            return False
        left = value
    return True


def number(value: Value) -> Value:
    """Return the number that a text is, or the text."""
    if isinstance(value, str) and len(value) < 24:  # noqa: PLR2004 - longer is no figure of ours
        try:
            return int(value) if value.lstrip("-").isdecimal() else float(value)
        except ValueError:
            return value
    return value
