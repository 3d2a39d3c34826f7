"""Rewrites a parsed chat template so that all it does goes through the budget."""

from __future__ import annotations

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from ..errors import UnsupportedError


def rewrite(template: nodes.Template) -> nodes.Template:
    """The template with loops, macros, output, joins, slices, literals and comparisons made to pay."""
    _Rewriter().visit(template)
    return template


def constants(template: nodes.Template) -> set[str]:
    """All strings in the template's expressions."""
    return {node.value for node in template.find_all(nodes.Const) if isinstance(node.value, str)}


class _Rewriter(NodeTransformer):
    def visit_For(self, node: nodes.For) -> nodes.Node:
        """A turn of the loop is paid for, and so is one that its filter leaves out."""
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_tick(node), lineno=node.lineno))
        if node.test is not None:
            node.test = nodes.And(_tick(node), node.test, lineno=node.lineno)
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        """A call is paid for."""
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_tick(node), lineno=node.lineno))
        return node

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:
        """A block handed to a macro is called like one."""
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_tick(node), lineno=node.lineno))
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        """Whatever is written is paid for, also inside of macros and blocks that are put together later."""
        self.generic_visit(node)
        node.nodes = [_call("_emit", _as_constant(child), node) for child in node.nodes]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """`a ~ b` is compiled to a join that cannot be watched."""
        self.generic_visit(node)
        return _call("_concat", nodes.List(node.nodes, lineno=node.lineno), node)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        """A slice is a copy."""
        self.generic_visit(node)
        return _call("_sized", node, node) if isinstance(node.arg, nodes.Slice) else node

    def visit_List(self, node: nodes.List) -> nodes.Node:
        """A list of lists of lists can be small in memory and endless to print."""
        return self._container(node, node.items)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        """As a list, save where it stands on the left of an assignment."""
        if node.ctx != "load":
            return node
        return self._container(node, node.items)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        """As a list."""
        return self._container(node, [part for pair in node.items for part in (pair.key, pair.value)])

    def _container(self, node: nodes.Expr, parts: list[nodes.Expr]) -> nodes.Node:
        constant = all(isinstance(part, nodes.Const) for part in parts)
        self.generic_visit(node)
        return node if constant else _call("_bounded", node, node)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        """Containers are compared item by item."""
        self.generic_visit(node)
        node.expr = _guarded(node.expr)
        for operand in node.ops:
            operand.expr = _guarded(operand.expr)
        return node

    def _refuse(self, node: nodes.Node) -> nodes.Node:
        raise UnsupportedError("the chat template includes another file, and a model file holds no other")

    visit_Include = visit_Import = visit_FromImport = visit_Extends = _refuse


def _tick(node: nodes.Node) -> nodes.Filter:
    return _call("_tick", nodes.Const(True, lineno=node.lineno), node, nodes.Const(1, lineno=node.lineno))


def _guarded(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _call("_bounded", node, node)


def _as_constant(node: nodes.Expr) -> nodes.Expr:
    return nodes.Const(node.data, lineno=node.lineno) if isinstance(node, nodes.TemplateData) else node


def _call(name: str, value: nodes.Expr, at: nodes.Node, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(value, name, list(args), [], None, None, lineno=at.lineno)
