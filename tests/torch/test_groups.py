"""What groups of parameters move alone, against steps in which all others stand still."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield as mf  # noqa: E402
import meanfield.torch as mft  # noqa: E402
from tests.torch import models  # noqa: E402
from tests.torch.test_real_steps import central_differences, made  # noqa: E402

NAMES = ["transformer.h.0", "transformer.h.1", "transformer.ln_f", "lm_head"]
GROUPS = {"norms": ["*.ln_?.*"], "tied table": "transformer.wte.weight", "all": "*"}
HOW = {"optimizer": torch.optim.AdamW, "reinit": None, "modules": NAMES, "draws": 2}


def moved(**options):
    model = made(models.GPT)
    return mft.step_scales(model, models.token_loss, [models.tokens()], **HOW | options)


def test_a_group_moves_what_its_own_step_moves():
    scales = moved(groups=GROUPS)
    energy = scales.update_energy_of_group
    assert energy.dims == ("group", "layer")
    assert energy.group.values.tolist() == list(GROUPS)
    np.testing.assert_allclose(energy.sel(group="all"), scales.update_energy, rtol=1e-12)
    model, batch = made(models.GPT), models.tokens()

    def norms_alone(own):
        for name, parameter in own.named_parameters():
            if ".ln_" not in name:
                parameter.grad = None
        return torch.optim.AdamW(own.parameters(), lr=1e-3)

    expected = central_differences(model, models.token_loss, batch, norms_alone, NAMES)
    np.testing.assert_allclose(energy.sel(group="norms"), [expected[name] for name in NAMES], rtol=1e-5)
    assert (scales.update_energy_of_group_stderr == 0).all()


def test_it_is_a_quantity_of_the_registry_as_all_others():
    """And no variable of the dataset is none, or has no words."""
    scales = moved(groups=GROUPS)
    own = {name for name in map(str, scales.data_vars) if not re.search("_(stderr|largest_share|covariance)$", name)}
    assert "update_energy_of_group" in own
    assert own <= set(mf.QUANTITIES)
    entry, attrs = mf.QUANTITIES["update_energy_of_group"], scales["update_energy_of_group"].attrs
    assert scales["update_energy_of_group"].dims == entry.dims
    assert (attrs["symbol"], attrs["definition"], attrs["units"]) == (entry.symbol, entry.definition, "1")
    assert scales["update_energy_of_group_largest_share"].values == pytest.approx(0.5)


def test_what_stands_below_a_group_does_not_move():
    energy = moved(groups={"last": "transformer.ln_f.weight"}).update_energy_of_group[0]
    assert energy.values[:2].tolist() == [0, 0]
    assert (energy[2:] > 0).all()


@pytest.mark.parametrize(
    ("refusal", "sentence", "groups"),
    [
        (ValueError, "no parameter that trains fits 'gains'", {"norms": ["*.ln_?.*", "gains"]}),
        (TypeError, "give a mapping from labels to patterns", ["*.bias"]),
        (TypeError, "give names of parameters", {"norms": 3}),
        (TypeError, "give names of parameters", {"norms": [3]}),
    ],
)
def test_groups_that_are_none_are_refused(refusal, sentence, groups):
    with pytest.raises(refusal, match=sentence):
        moved(groups=groups)
