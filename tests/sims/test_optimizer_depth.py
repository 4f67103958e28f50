"""The study of one step of each optimizer: verdicts, worlds of the rivals, too few draws, choices of nets."""

import numpy as np
import pytest

from figures import optimizer_depth as figure
from meanfield.verification.verdicts import Verdict
from sims.common.report import BRIEF
from sims.optimizer_depth import claims
from sims.optimizer_depth.families import DESCENT, OPTIMIZERS, PLAIN, RESIDUAL
from sims.optimizer_depth.study import STUDY as simulation
from tests.sims.claim_controls import optimizers as worlds

# What a judge says of the laws of one step, and the world in which its rival is right.
RIVALS = {
    **{
        f"coherent {family}": (
            lambda dataset, family=family: claims.judge_coherent(dataset, family),
            lambda dataset, family=family: worlds.as_descent(dataset, family),
        )
        for family in claims.COHERENT[1:]
    },
    "plain": (claims.judge_plain, worlds.half_a_power_lower),
    "width": (claims.judge_width, worlds.one_power_of_the_width),
    "forgotten": (claims.judge_forgotten, worlds.remembered),
    **{
        f"tables {family}": (
            lambda dataset, family=family: claims.judge_tables(dataset, family),
            lambda dataset, family=family: worlds.as_power_of_descent(dataset, family),
        )
        for family in claims.TABLES
    },
}


@pytest.fixture(scope="module")
def finished(smoke_run):
    return smoke_run("optimizer_depth")


def test_verdicts(finished):
    found = claims.findings(finished)
    assert [finding.claim for finding in found if finding.verdict is not Verdict.CONFIRMED] == []
    assert len(found) == len(claims.JUDGES)


@pytest.mark.parametrize("name", RIVALS)
def test_the_world_of_the_rival_is_refuted(finished, name):
    judge, world = RIVALS[name]
    assert judge(world(finished)).verdict is Verdict.REFUTED


def test_under_variance_one_over_k_minus_three_halves_is_refuted(finished):
    """Where descent has the law of all others, the rival is K^(-3/2)."""
    dataset = finished
    for name in worlds.others(finished):
        law = (dataset["blocks"] / 2.0) ** -1.5
        dataset = worlds.put(dataset, claims.LABEL_SCALE, law.values, optimizer=name, family="init")
    assert claims.judge_coherent(dataset, "init").verdict is Verdict.REFUTED


@pytest.mark.parametrize("name", RIVALS)
def test_too_few_draws_decide_nothing(finished, name):
    """Errors of four draws, of which nobody knows how large they are."""
    few = finished.assign_attrs(draws=2)
    for variable in [str(variable) for variable in finished if str(variable).endswith("_stderr")]:
        few = few.assign({variable: finished[variable] * (finished.attrs["draws"] / 2) ** 0.5})
    assert RIVALS[name][0](few).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("family", RESIDUAL)
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_theory_tends_to_the_exponents_that_are_named(family, optimizer):
    """From 128 to 256 blocks under Muon and signs, on one scrambling of gates less."""
    blocks = (128, 256) if optimizer == "muon" else (32, 64)
    plan = simulation.checked(simulation.parse(["--preset", "smoke", "--blocks", *map(str, blocks)]))
    from sims.optimizer_depth.study import _log_theory

    logs = [_log_theory(net, optimizer)[f"log_{claims.LABEL_SCALE}_mean_field"] for net in plan["nets"][family]]
    slope = np.diff(logs)[0] / np.log(2)
    assert slope == pytest.approx(claims.limit_of(family, optimizer), abs=0.03 if optimizer == "muon" else 0.12)


def test_one_step_is_what_an_optimizer_takes_of_the_gradient():
    from meanfield.optimizers.first_steps import FirstStep

    words = {"gradient": "descent", "sign": "signs", "polar": "polar factors"}
    assert {name: words[FirstStep(name).form_of("hidden")] for name in OPTIMIZERS} == OPTIMIZERS


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Plain nets alone, and residual nets alone, under other optimizers."""
    folder = tmp_path_factory.mktemp("few")
    size = ["--preset", "smoke", "--draws", "4", "--width", "16", "--widths", "8", "16", "32"]
    words = {
        PLAIN: ["--families", "plain", "--optimizers", "lion"],
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
