"""Nothing is left without its counterpart: quantities and theory, simulations, figures and claims."""

import contextlib
import importlib
import re

import pytest

import meanfield as mf
import sims
from figures import figure_names
from meanfield.quantities.registry import QUANTITIES
from meanfield.verification.claims import Kind
from sims import simulation as simulation_module
from sims.claims.catalogue import CLAIMS

# Commands that judge nothing: they serve numbers to those who need them.
SERVICES = ("check_recipe", "claims", "hyperparameters", "measure_model", "sweep")
# What judges the claim that its user gives.
OF_ITS_USERS = ("depth_law",)
# Claims that no paper makes: what we ask beside those that it does.
OF_OUR_OWN = {name for name, claim in CLAIMS.items() if claim.kind is Kind.OWN}
NETS = (
    mf.MLP(depth=2, width=4),
    mf.ConvNet(depth=2, channels=4, grid=(4,), readout="convolution"),
    mf.ResidualMLP(depth=2, width=4, activation="linear"),
    mf.TiedLoop(depth=2, width=4),
    mf.Transformer(depth=1, width=4, tokens=2, outputs=1),
)
EXTRAS = (
    {},
    {"batch": mf.Batch()},
    {"spread": True},
    {"by_site": True},
    {"correlations": True},
    {"pairs": [((1, 1), (2, 1))]},
    {"optimizer": "adamw"},
)


def _simulations():
    return [name for name in sims.NAMES if name not in SERVICES]


@pytest.fixture(scope="module")
def predicted():
    """Every variable that some net has at some level."""
    names = set()
    for net in NETS:
        for level in ("exact", "mean_field", "law"):
            for extra in EXTRAS:
                with contextlib.suppress(ValueError):
                    names |= set(mf.predict(net, level=level, **extra).data_vars)
    return names


@pytest.mark.filterwarnings("ignore::meanfield.PremiseWarning")
def test_every_quantity_has_a_prediction_or_says_why_not(predicted):
    assert predicted <= set(QUANTITIES)
    plain = {name: quantity for name, quantity in QUANTITIES.items() if not name.startswith("log_")}
    assert {name for name, quantity in plain.items() if not quantity.unpredicted} == set(plain) & predicted


@pytest.mark.parametrize("name", _simulations())
def test_every_simulation_has_a_figure_and_a_claim(name):
    assert name in figure_names()
    assert callable(importlib.import_module(f"figures.{name}").draw)
    rests = any(check.simulation == name for claim in CLAIMS.values() for check in claim.checks)
    assert rests != (name in OF_ITS_USERS)


def test_every_figure_has_a_simulation():
    assert set(figure_names()) == set(_simulations())


def test_every_claim_is_fully_described():
    for name, claim in CLAIMS.items():
        assert all([claim.statement, claim.source, claim.hypotheses, claim.checks]), name
        assert all(check.simulation in _simulations() for check in claim.checks), name
        assert bool(claim.replaced_by) == bool(claim.premise), name


def test_what_a_source_prints_is_quoted_in_a_few_words_with_its_place():
    """Or it is said that no source prints it, of claims of our own."""
    quoted = {name: re.fullmatch(r'"([^"]+)" \(.+\)', claim.printed) for name, claim in CLAIMS.items()}
    assert {name for name, match in quoted.items() if not match} == OF_OUR_OWN
    assert {name for name, match in quoted.items() if match and len(match[1].split()) > 25} == set()
    assert all(CLAIMS[name].printed.startswith("no sentence of a paper: ") for name in OF_OUR_OWN)


def test_every_preset_has_a_duration():
    commands = map(simulation_module, (*_simulations(), *SERVICES))
    assert all(preset.seconds > 0 for command in commands for preset in command.presets.values())
