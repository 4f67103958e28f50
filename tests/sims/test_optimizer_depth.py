"""The study of one step of each optimizer: verdicts, worlds of the rivals, too few draws, choices of nets."""

import numpy as np
import pytest

from figures import optimizer_depth as figure
from meanfield.optimizers.first_steps import FirstStep
from meanfield.verification.verdicts import Verdict
from sims.common.report import BRIEF
from sims.optimizer_depth import claims
from sims.optimizer_depth.__main__ import STUDY as simulation
from sims.optimizer_depth.claims import (
    BASE,
    DESCENT,
    LABEL_SCALE,
    NAME,
    OF_PLAIN,
    OF_SETTING,
    OF_WIDTH,
    OPTIMIZERS,
    PLAIN,
    SCALE,
    limit_of,
)
from tests.sims.claim_controls import put

# Worlds in which one step of signs and of polar factors obeys the law of one step of descent.


def others(dataset):
    return [str(name) for name in dataset["optimizer"].values if name != DESCENT]


def as_descent(dataset, family):
    """Scales of a family of residual nets that go with depth as the mean field of descent."""
    law = np.exp(dataset[f"log_{LABEL_SCALE}_mean_field"].sel(optimizer=DESCENT, family=family))
    for name in others(dataset):
        dataset = put(dataset, LABEL_SCALE, law.values, optimizer=name, family=family)
    return dataset


def as_power_of_descent(dataset, family):
    """The same, as the power that this tends to."""
    law = (dataset["blocks"] / dataset["blocks"][0]) ** limit_of(family, DESCENT)
    for name in others(dataset):
        dataset = put(dataset, LABEL_SCALE, law.values, optimizer=name, family=family)
    return dataset


def half_a_power_lower(dataset):
    """Scales of plain nets that fall with depth by half a power more than in the mean field of each optimizer."""
    name = OF_PLAIN + LABEL_SCALE
    for optimizer in dataset["optimizer"].values:
        power = 0.0 if optimizer == DESCENT else -0.5
        law = np.exp(dataset[f"log_{name}_mean_field"].sel(optimizer=optimizer)) * dataset["depth"] ** power
        dataset = put(dataset, name, law.values, optimizer=optimizer)
    return dataset


def one_power_of_the_width(dataset):
    """n^(-1/2) under all optimizers but descent, which does not depend on the width."""
    for optimizer in dataset["optimizer"].values:
        law = dataset["width"] ** (0.0 if optimizer == DESCENT else -0.5)
        dataset = put(dataset, OF_WIDTH + LABEL_SCALE, law.values, optimizer=optimizer)
    return dataset


def remembered(dataset):
    """Labels, loss, outputs and head change every scale as they change that of descent."""
    name = OF_SETTING + SCALE
    of_descent = dataset[name].sel(optimizer=DESCENT)
    for optimizer in others(dataset):
        base = float(dataset[name].sel(optimizer=optimizer, setting=BASE))
        dataset = put(dataset, name, (base * of_descent / of_descent.sel(setting=BASE)).values, optimizer=optimizer)
    return dataset


CONTROLS = {
    "O1": lambda runs: {NAME: as_descent(runs[NAME], "multiplier_sqrt")},
    "O2": lambda runs: {NAME: half_a_power_lower(runs[NAME])},
    "O3": lambda runs: {NAME: remembered(runs[NAME])},
    "O4": lambda runs: {NAME: as_power_of_descent(runs[NAME], "multiplier_sqrt")},
}

# What a judge says of the laws of one step, and the world in which its rival is right.
RIVALS = {
    **{
        f"coherent {family}": (
            lambda dataset, family=family: claims.judge_coherent(dataset, family),
            lambda dataset, family=family: as_descent(dataset, family),
        )
        for family in claims.COHERENT[1:]
    },
    "plain": (claims.judge_plain, half_a_power_lower),
    "width": (claims.judge_width, one_power_of_the_width),
    "forgotten": (claims.judge_forgotten, remembered),
    **{
        f"tables {family}": (
            lambda dataset, family=family: claims.judge_tables(dataset, family),
            lambda dataset, family=family: as_power_of_descent(dataset, family),
        )
        for family in claims.TABLES
    },
}


@pytest.fixture(scope="module")
def finished(smoke_run):
    return smoke_run("optimizer_depth")


def test_verdicts(finished):
    judged = claims.findings(finished)
    assert [finding.claim for finding in judged if finding.verdict is not Verdict.CONFIRMED] == []
    assert len(judged) == len(claims.JUDGES)


@pytest.mark.parametrize("name", RIVALS)
def test_the_world_of_the_rival_is_refuted(finished, name):
    judge, world = RIVALS[name]
    assert judge(world(finished)).verdict is Verdict.REFUTED


def test_under_variance_one_over_k_minus_three_halves_is_refuted(finished):
    """Where descent has the law of all others, the rival is K^(-3/2)."""
    dataset = finished
    for name in others(finished):
        law = (dataset["blocks"] / 2.0) ** -1.5
        dataset = put(dataset, claims.LABEL_SCALE, law.values, optimizer=name, family="init")
    assert claims.judge_coherent(dataset, "init").verdict is Verdict.REFUTED


@pytest.mark.parametrize("name", RIVALS)
def test_too_few_draws_decide_nothing(finished, name):
    """Errors of four draws, of which nobody knows how large they are."""
    few = finished.assign_attrs(draws=2)
    for variable in [str(variable) for variable in finished if str(variable).endswith("_stderr")]:
        few = few.assign({variable: finished[variable] * (finished.attrs["draws"] / 2) ** 0.5})
    assert RIVALS[name][0](few).verdict is Verdict.INCONCLUSIVE


def test_one_step_is_what_an_optimizer_takes_of_the_gradient():
    words = {"gradient": "descent", "sign": "signs", "polar": "polar factors"}
    assert {name: words[FirstStep(name).form_of("hidden")] for name in OPTIMIZERS} == OPTIMIZERS


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Plain nets alone, and residual nets alone, under other optimizers."""
    folder = tmp_path_factory.mktemp("few")
    size = ["--preset", "smoke", "--draws", "4", "--width", "32", "--widths", "32", "48", "64"]
    words = {
        PLAIN: ["--families", "plain", "--optimizers", "lion", "--depths", "3", "4"],
        "init": ["--families", "init", "--blocks", "2", "4"],
    }
    return {name: simulation.finished([*size, *given], folder / f"{name}.nc") for name, given in words.items()}


@pytest.mark.parametrize(("name", "verdicts"), [(PLAIN, 3), ("init", 3)])
def test_some_families_are_judged_and_drawn_alone(few, name, verdicts):
    assert len(claims.findings(few[name])) == verdicts
    assert list(few[name]["drawn_family"].values) == [name]
    assert str(few[name]["optimizer"].values[0]) == DESCENT
    assert len(figure.draw(few[name]).axes) == 3


def test_the_report_is_one_screen(finished, few):
    for dataset in (finished, *few.values()):
        assert len(simulation.document(dataset).short().splitlines()) <= BRIEF
