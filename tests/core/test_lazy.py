"""Modules that are imported when they are first used."""

from __future__ import annotations

import fractions
import sys

import pytest

from rankinite.core.lazy import LazyModule, is_instance


def test_the_first_use_imports(monkeypatch):
    monkeypatch.delitem(sys.modules, "fractions")
    module = LazyModule("fractions")
    assert "fractions" not in sys.modules
    assert module.Fraction(1, 2) * 2 == 1
    assert module.Fraction is sys.modules["fractions"].Fraction


def test_what_a_module_does_not_have():
    with pytest.raises(AttributeError, match="nothing"):
        LazyModule("fractions").nothing  # noqa: B018
    with pytest.raises(ImportError, match="no_such_module"):
        LazyModule("no_such_module").anything  # noqa: B018


def test_instances_of_a_library_that_nobody_imported(monkeypatch):
    half = fractions.Fraction(1, 2)
    assert is_instance(half, "fractions", "Fraction")
    assert not is_instance(0.5, "fractions", "Fraction")
    monkeypatch.delitem(sys.modules, "fractions")
    assert not is_instance(half, "fractions", "Fraction")
    assert "fractions" not in sys.modules
