"""What mkdocstrings has to know about this package's docstrings and names: a Griffe extension.

Docstrings write cross-references as Sphinx does: ``:class:`fspll.candidates.Candidates```. A target
with an entry in the API reference becomes a link; any other one is shown as code. Doctests become
blocks of code. Names that a package imports when they are first used (``fspll._common.lazy``) are
found where they are defined.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
_ROLE = re.compile(r":(?:class|func|meth|data|mod|attr|exc|obj):`(~?)([\w.]+)`")


def link_roles(text: str) -> str:
    """Return a docstring with its roles as optional references of mkdocs-autorefs."""

    def link(role: re.Match[str]) -> str:
        short, target = role.groups()
        shown = target.rpartition(".")[2] if short else target
        return f'<autoref optional identifier="{target}"><code>{shown}</code></autoref>'

    return _ROLE.sub(link, text)


def fence_examples(text: str) -> str:
    """Return a docstring with its doctests as blocks of code, unless a section holds them."""
    if re.search(r"^Examples\n-+$", text, re.MULTILINE):
        return text
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)


def lazy_paths(tree: ast.AST) -> dict[str, str]:
    """Return the path, inside its package, of every name that ``lazy_names`` is called with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "lazy_names":
            modules = ast.literal_eval(node.args[1])
            return {name: f"{of}.{name}" for of, names in modules.items() for name in names.split()}
    return {}


class Names(griffe.Extension):
    """Rewrite roles and doctests of docstrings, and add the names that are imported later."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Replace the text of one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fence_examples(link_roles(obj.docstring.value))

    def on_module_members(self, *, node: Any, mod: griffe.Module, **_: Any) -> None:
        """Add a module's lazy names as aliases."""
        if isinstance(node, ast.AST):
            for name, path in lazy_paths(node).items():
                mod.set_member(name, griffe.Alias(name, f"{mod.path}.{path}"))
