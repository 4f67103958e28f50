"""What is stored says what it is."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import sims
from sims import simulation
from sims.claims.catalogue import CLAIMS
from sims.common.datasets import Variable, described, over, words_of
from sims.common.study import Study

STUDIES = [name for name in sims.NAMES if isinstance(simulation(name), Study)]


@pytest.mark.parametrize("name", STUDIES)
def test_every_variable_that_is_stored_has_words(name, smoke_run):
    dataset = smoke_run(name)
    assert [str(variable) for variable in dataset.variables if not dataset[variable].attrs.get("long_name")] == []


@pytest.mark.parametrize("name", STUDIES)
def test_no_variable_is_declared_that_no_run_stores(name, smoke_run, smoke_runs):
    stored = set(smoke_run(name).variables)
    stored.update(*(smoke_runs[run].variables for run in smoke_runs if run.split("-")[0] == name))
    assert [variable.name for variable in simulation(name).variables if variable.name not in stored] == []


def test_words_are_declared_or_the_registry_s_or_made_of_both():
    declared = {"far_slope": Variable("far_slope", "slope far up", source="section 3")}
    assert words_of("far_slope", declared) == {"long_name": "slope far up", "units": "1", "source": "section 3"}
    assert words_of("label_term")["long_name"] == "label term"
    assert words_of("far_slope_stderr", declared)["long_name"] == "slope far up: standard error over draws"
    assert words_of("label_term_stderr_mean_field")["long_name"] == "label term, mean field: standard error over draws"
    assert words_of("far_slope") == {}


def test_rows_over_a_grid_keep_the_words_of_the_registry():
    dataset = over({"depth": [2, 4]}, [{"label_term": 1.0, "own": 2.0}] * 2)
    assert dataset["label_term"].attrs["long_name"] == "label term"
    assert dataset["own"].attrs == {}


def test_what_nobody_declares_keeps_its_own_words():
    dataset = xr.Dataset({"own": ("depth", np.ones(2), {"long_name": "an own number"})}, {"depth": [1, 2]})
    assert described(dataset, ()).own.attrs == {"long_name": "an own number"}
    assert dataset["depth"].attrs["long_name"] == "depth L"


def test_studies_state_their_claims_without_docstrings():
    command = "from sims.claims.catalogue import CLAIMS; print(len(CLAIMS))"
    done = subprocess.run([sys.executable, "-OO", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == f"{len(CLAIMS)}\n"
