"""The glossary is read right, and what cannot be read is refused."""

import pytest

import meanfield as mf
from meanfield.quantities import registry
from meanfield.quantities.glossary import CURVATURE, LOOPS, NETS, SINGLE_DRAWS, TRAINING


def test_an_entry_has_its_fields():
    entry = mf.QUANTITIES["pre_activation_energy"]
    assert (entry.symbol, entry.dims, entry.long_name) == ("c_l", ("layer",), "pre activation energy")
    assert entry.definition == "mean square over channels and sites of z^(l) itself"
    assert entry.scaling.startswith("1 at every layer")
    assert entry.scaling.endswith("otherwise it drifts exponentially towards a fixed point or away from it")
    assert entry.source == "Zhang et al. 2026, appendix F; docs/theory.md section 6"
    assert entry.unpredicted.startswith("predicted with its correction")
    assert mf.QUANTITIES["gated_overlap"].symbol == "E[T_{l+1} | layers up to l]"
    assert mf.QUANTITIES["mean_update_energy"].dims == ()


def test_every_title_is_an_entry_of_its_own():
    glossaries = (NETS, LOOPS, SINGLE_DRAWS, TRAINING, CURVATURE)
    titles = [line for text in glossaries for line in text.splitlines() if line[:1].strip()]
    assert [title.split(" = ")[0] for title in titles] == [
        name
        for name, quantity in mf.QUANTITIES.items()
        if not name.startswith(("log_", "adjusted_")) and "draw" not in quantity.dims
    ]


def test_what_is_no_entry_is_refused():
    with pytest.raises(ValueError, match="write: name = symbol"):
        registry._entries("energy\n    square\n    scaling: 1\n    source: none")
    with pytest.raises(TypeError, match="scaling"):
        registry._entries("energy = E\n    square\n    source: none")
