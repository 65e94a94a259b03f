"""Sphinx: how the documentation site is built (``make docs``)."""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

import rankinite

project = "Rankinite"
author = "the Rankinite developers"
release = version = rankinite.__version__
html_title = f"Rankinite {version}"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = False
suppress_warnings: list[str] = []
root_doc = "index"
smartquotes = False  # two dashes are a flag
default_role = "code"

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
maximum_signature_line_length = 88
numpydoc_show_class_members = False

# Only what is typed is copied, not prompts and output.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "Rankinite"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 5,
}
html_context = {"default_mode": "auto"}
copyright = "the Rankinite developers; MIT licence"


def write_math(translator: Any, node: nodes.Element, is_block: bool) -> None:
    """Write a formula as MathML, which browsers draw without a script from another host."""
    translator.body.append(
        tex2mathml(node.astext(), as_block=is_block).replace("<math", '<math tabindex="0"', 1)
        if is_block
        else tex2mathml(node.astext())
    )
    raise nodes.SkipNode


def skip_member(
    _app: Sphinx, _kind: str, name: str, member: Any, skip: bool, _options: Any
) -> bool:
    """Leave out what scikit-learn gives every estimator: its own documentation explains it."""
    is_routing = (
        name == "get_metadata_routing" or re.fullmatch(r"set_\w+_request", name) is not None
    )
    return skip or is_routing or str(getattr(member, "__module__", "")).startswith("sklearn.")


def show_signature(
    _app: Sphinx, kind: str, _name: str, member: Any, *_rest: Any
) -> tuple[str, str] | None:
    """Show the parameters that a ranker declares, which its ``__init__`` gets by name."""
    if kind != "class" or not hasattr(member, "get_params"):
        return None
    parameters = inspect.signature(member).parameters.values()
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return str(inspect.Signature(plain)), ""


def setup(app: Sphinx) -> None:
    """Register the renderer of formulas, and what is shown of classes."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-signature", show_signature)
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda self, node: write_math(self, node, False), None),
        block_renderers=(lambda self, node: write_math(self, node, True), None),
    )


html_math_renderer = "mathml"
