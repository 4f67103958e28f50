"""The study of one step of each optimizer: verdicts, worlds of the rivals, too few draws, choices of nets."""

import pytest

from figures import optimizer_depth as figure
from meanfield.optimizers.first_steps import FirstStep
from meanfield.verification.verdicts import Verdict
from sims.common.report import BRIEF
from sims.optimizer_depth import claims
from sims.optimizer_depth.__main__ import STUDY as simulation
from sims.optimizer_depth.claims import DESCENT, OPTIMIZERS, PLAIN
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
