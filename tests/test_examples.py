"""The examples in the docstrings of public names: each has one, and prints what it says."""

import doctest

import pytest

import meanfield as mf

# What nobody calls.
DATA = {"__version__", "QUANTITIES", "PremiseWarning"}


@pytest.mark.parametrize("name", sorted(set(mf.__all__) - DATA))
def test_public_names_have_an_example_that_runs(name):
    value = getattr(mf, name)
    example = doctest.DocTestParser().get_doctest(value.__doc__, {}, name, None, None)
    assert example.examples, f"the docstring of {name} has no example"
    report = []
    failed = doctest.DocTestRunner().run(example, out=report.append).failed
    assert not failed, "".join(report)
