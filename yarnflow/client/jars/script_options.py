"""What a program asks for in jars itself, as far as its text tells.

It is read so that the submit, and not the driver, finds the jars.  Only what certainly runs counts: the
statements of the module and of the functions that they call, up to the first branch that may leave them.
An option that is set in two ways counts as unknown.  What is passed over is found by the driver, when a
script asks for its session.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from yarnflow.config.options import job
from yarnflow.core.jars.request import JAR_KEYS

#: ``builder.config``, ``SparkConf.set``, ``Configuration.set_string``
_SETTERS: Final = {"config", "set", "set_string"}
#: of PyFlink's environment → the option that they add to
_ADDERS: Final = {"add_jars": job.PIPELINE_JARS.key, "add_classpaths": job.PIPELINE_CLASSPATHS.key}
_KEYS: Final = {*JAR_KEYS, *_ADDERS.values()}
#: parts of an expression that may not be evaluated, or not now
_NOT_NOW: Final = (
    *(ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def jar_options(source: bytes) -> dict[str, str]:
    """Options about jars that are set by literals, or by names of literals.

    >>> jar_options(b'SparkSession.builder.config("spark.jars", "a.jar").getOrCreate()')
    {'spark.jars': 'a.jar'}
    """
    tree = ast.parse(source)
    running = list(_Run(tree).nodes())
    named = dict(_constants(tree, running))
    # all that set an option, also where they do not run
    said: defaultdict[str | None, set[str | None]] = defaultdict(set)
    for node in ast.walk(tree):
        for key, value in _pairs(node):
            said[_text(key, named)].add(_text(value, named))
    found: dict[str, str] = {}
    added: defaultdict[str, list[str]] = defaultdict(list)
    for node in running:
        for key, value in _pairs(node):
            option, text = _text(key, named), _text(value, named)
            if option in _KEYS and text is not None and said[option] == {text}:
                found[option] = text
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDERS:
            texts = (_text(argument, named) for argument in node.args)
            added[_ADDERS[node.func.attr]] += [text for text in texts if text]
    for option, items in added.items():
        found[option] = ";".join(filter(None, (found.get(option, ""), *items)))
    return found


class _Run:
    """The statements that run whatever happens, and the expressions in them."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._functions: dict[str, _Function | None] = {}
        for statement in ast.walk(tree):
            if isinstance(statement, _FUNCTIONS):
                # of two nobody knows which one is meant
                twice = statement.name in self._functions or statement not in tree.body
                self._functions[statement.name] = None if twice else statement
        self._entered: set[str] = set()

    def nodes(self) -> Iterator[ast.AST]:
        return self._block(self._tree.body)

    def _block(self, statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
        for statement in statements:
            yield from self._statement(statement)
            if isinstance(statement, ast.Raise) or _may_leave(statement):
                return

    def _statement(self, statement: ast.stmt) -> Iterator[ast.AST]:
        yield statement
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                yield from self._expression(item.context_expr)
            yield from self._block(statement.body)
        elif isinstance(statement, ast.Try) and not statement.handlers:
            yield from self._block(statement.body)
        elif isinstance(statement, ast.If) and _asks_for_main(statement.test):
            yield from self._block(statement.body)
        elif not hasattr(statement, "body") and not isinstance(statement, ast.Match):
            for part in ast.iter_child_nodes(statement):
                yield from self._expression(part)

    def _expression(self, node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, _NOT_NOW):
            return
        yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function = self._functions.get(node.func.id)
            if function is not None and function.name not in self._entered:
                self._entered.add(function.name)
                yield from self._block(function.body)
        for part in ast.iter_child_nodes(node):
            yield from self._expression(part)


def _asks_for_main(test: ast.expr) -> bool:
    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")


def _may_leave(node: ast.AST) -> bool:
    """Whether the function may have ended after it; a script that exits or raises needs no jars."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
        return False
    return isinstance(node, ast.Return) or any(map(_may_leave, ast.iter_child_nodes(node)))


def _constants(tree: ast.Module, running: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Names that the program gives a text, once."""
    times: defaultdict[str, int] = defaultdict(int)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            times[node.id] += 1
        elif isinstance(node, ast.arg):
            times[node.arg] += 1
    for node in running:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, text = node.targets[0], _text(node.value, {})
            if isinstance(target, ast.Name) and text is not None and times[target.id] == 1:
                yield target.id, text


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if node.func.attr not in _SETTERS:
        return
    if len(node.args) == 2:
        yield node.args[0], node.args[1]
    by_name = {keyword.arg: keyword.value for keyword in node.keywords}
    if "key" in by_name and "value" in by_name:
        yield by_name["key"], by_name["value"]
    options = by_name.get("map")
    if isinstance(options, ast.Dict):
        yield from ((key, value) for key, value in zip(options.keys, options.values) if key is not None)


def _text(node: ast.expr, named: dict[str, str]) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return named.get(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        separator = _text(node.func.value, named)
        items = node.args[0] if len(node.args) == 1 else None
        if separator is not None and isinstance(items, (ast.List, ast.Tuple)):
            texts = [_text(item, named) for item in items.elts]
            known = [text for text in texts if text is not None]
            return separator.join(known) if len(known) == len(texts) else None
    return None
