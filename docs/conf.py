"""The documentation's site: `python -m sphinx -W --keep-going -n -b html docs FOLDER` (`.ci/run site`)."""  # noqa: INP001 - Sphinx's

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from pydantic import BaseModel

import pytest_vllm
from tools.site import api, links, lists, pages

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

project = "pytest-vllm"
release = pytest_vllm.__version__
version = release.partition("+")[0]
html_title = f"pytest-vllm {version}"
html_theme = "furo"
html_show_copyright = False
html_show_sphinx = False
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["example/**"]
myst_heading_anchors = 4
default_role = "code"
nitpicky = True
# Names of the standard library and of dependencies are not looked up: a build needs no network.
_OURS = "|".join(pytest_vllm.__all__)
nitpick_ignore_regex = [(r"py:.*", rf"(?!pytest_vllm\.)(?!({_OURS})$).*")]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False


def setup(app: Sphinx) -> None:
    """Make the generated pages, and let the guides' links reach them."""
    pages.write()
    app.connect("source-read", _read)
    app.connect("autodoc-process-signature", _signature)
    app.connect("missing-reference", _public)


def _read(_: Sphinx, name: str, source: list[str]) -> None:
    """Links of a guide; and the table of rules, which has a page of its own here."""
    if name.startswith("generated/"):
        return
    text = links.for_site(source[0], f"docs/{name}.md", f"{name}.md")
    source[0] = text.replace(lists.render.catalogue(), "All of them: [preflight rules](generated/rules.md).")


def _signature(_: Sphinx, what: str, name: str, found: object, *__: object) -> tuple[str, None] | None:  # noqa: ARG001
    """A profile's tables are read from TOML: their keys have a page, and pydantic's signature says less."""
    return ("", None) if isinstance(found, type) and issubclass(found, BaseModel) else None


def _public(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.Element
) -> nodes.Element | None:
    """A name where it is defined is the name that is imported from `pytest_vllm`."""
    target = node.get("reftarget", "")
    home, _, name = target.rpartition(".")
    if node.get("refdomain") != "py" or name not in pytest_vllm.__all__ or home not in ("", api.home(name)):
        return None
    domain = env.get_domain("py")
    found = domain.find_obj(env, None, None, f"pytest_vllm.{name}", None)
    if not found:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", f"pytest_vllm.{name}", node, text)
