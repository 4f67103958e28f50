"""Worlds in which claims on the rates that train best get another verdict."""

from functools import partial

import numpy as np
import xarray as xr

from meanfield.verification import tuned_rates
from sims.claims.catalogue import CLAIMS
from sims.hyperparameter_transfer import claims as hyperparameters
from sims.learning_rate_search import printed_tables
from tests.sims.claim_controls.changes import ERROR, many_draws


def _tuned(claim):
    """Rates of every family that a claim is about fall exactly as it says, from many seeds of nets that learn."""

    def exact(runs):
        return {name: of_run(_with(runs[name], of_claim), of_claim) for name, of_claim in _families(claim).items()}

    def of_run(dataset, of_claim):
        chosen, scale = dataset["family"].isin(of_claim), dataset["absolute_scale"]
        depth = dataset["depth"]
        law = ((depth + 1) * (depth**2 + depth + 1)) ** -0.5 + 0 * scale
        changed = {
            "tuned_rate_log10": np.log10(law if claim == "A21b" else scale),
            "tuned_rate_log10_stderr": 0 * scale + ERROR**2,
            "absolute_scale_stderr": ERROR**2 * scale,
            "located": 0 * dataset["located"] + 64,
        }
        put = {name: values.where(chosen, dataset[name]) for name, values in changed.items()}
        return _learned(dataset.assign(put))

    return exact


def _families(claim):
    """Those that the checks of a claim are about, by run."""
    families = {}
    for check in CLAIMS[claim].checks:
        named = getattr(check.judge, "keywords", {"family": printed_tables.VIT})
        families.setdefault(check.run, []).append(named["family"])
    return families


def of_exponent(dataset, exponent):
    """All families learn, and their tuned rates go as this power of the depth, where one step says -3/2.

    They lie in the middle of the rates that were tried.
    """
    dataset, spread = many_draws(dataset)
    tried, power = np.log10(dataset["rate"]), np.log10(dataset["depth"]) + 0 * dataset["absolute_scale"]
    rates = exponent * (power - power.mean()) + tried.mean()
    exact = {"tuned_rate_log10": rates, "tuned_rate_log10_stderr": ERROR + 0 * rates, "located": 64 + 0 * rates}
    exact |= {"absolute_scale": 10 ** (-1.5 * power), "absolute_scale_stderr": ERROR * 10 ** (-1.5 * power)}
    losses = 0.1 + 0.1 * (tried - rates) ** 2 + spread
    return dataset.assign(exact | {"final_loss": losses.transpose(*dataset["final_loss"].dims)})


def _of_exponent(claim):
    """Every table is right."""
    return lambda runs: {
        name: of_exponent(_with(runs[name], families), -1.5) for name, families in _families(claim).items()
    }


def _with(dataset, families):
    """With all of these families: those that a small run has not are others of its own by their names."""
    names = [str(name) for name in dataset["family"].values]
    spare = iter([name for name in names if name not in families])
    renamed = {next(spare): missing for missing in families if missing not in names}
    return dataset.assign_coords(family=[renamed.get(name, name) for name in names])


def _learned(dataset):
    """All nets learn."""
    return dataset.assign(final_loss=0 * dataset["final_loss"].fillna(0.1).clip(max=1.0) + 0.1)


# Families that the small runs have not, by those that stand for them.
STAND_IN = {"cnn": "cnn on mnist", "transformer post": "residual cnn init batch norm on mnist"}


def first_steps_are_right(runs, claim="E2"):
    """Nets of every optimizer learn, and are tuned where one step moves by 1 what their group is held to."""
    names = [check.run for check in CLAIMS[claim].checks]
    return {name: following(runs[name]) for name in dict.fromkeys(names)}


def following(dataset, off=0.0, of="outputs"):
    """Tuned rates that follow the scales of one step of each group, all of one constant, but for a power of depth."""
    names = [STAND_IN.get(str(family), str(family)) for family in dataset["family"].values]
    dataset = dataset.assign_coords(family=names)
    by_group = {name: scale for scale, families in tuned_rates.GROUPS.values() for name in families}
    rates = xr.concat([dataset.sel(family=name)[f"{by_group.get(name, of)}_scale"] for name in names], "family")
    log_rates = np.log10(rates) + off * np.log10(dataset["depth"])
    tiny = {f"{name}_stderr": ERROR * dataset[name] for name in dataset.data_vars if str(name).endswith("_scale")}
    exact = {"tuned_rate_log10": log_rates, "tuned_rate_log10_stderr": ERROR + 0 * log_rates}
    kept = {name: value for name, value in tiny.items() if not name.startswith(("one_step", "absolute_mean"))}
    return _learned(dataset.assign(exact | kept | {"located": 0 * dataset["located"] + 64}))


def _named_by_outputs(claim):
    """The same, tuned where the outputs move by 1 in every family."""

    def control(runs):
        exact = first_steps_are_right(runs, claim)
        rates = {name: np.log10(dataset["outputs_scale"]) for name, dataset in exact.items()}
        return {name: dataset.assign(tuned_rate_log10=rates[name]) for name, dataset in exact.items()}

    return control


def stable_rates_are_best(runs):
    dataset = runs["learning_rate_search"]
    exact = {"tuned_rate_log10": np.log10(dataset["stable_rate"]), "located": 0 * dataset["located"] + 64}
    errors = {
        "stable_rate_stderr": ERROR**2 * dataset["stable_rate"],
        "tuned_rate_log10_stderr": 0 * dataset["stable_rate"] + ERROR,
    }
    return {"learning_rate_search": _learned(dataset.assign(exact | errors))}


def of_length(dataset, in_steps=0.0, in_batch=0.0, ratio=0.0):
    """Nets of a long study, all of which learn, tuned at powers of steps and batch; the outputs' scale over it."""
    rates = in_steps * np.log10(dataset["steps"]) + in_batch * np.log10(dataset["batch_size"])
    rates = (rates + 0 * dataset["learns"]).transpose(*dataset["learns"].dims)
    scale = 10.0 ** ((in_batch + ratio) * np.log10(dataset["batch_size"])) + 0 * dataset["outputs_scale"]
    exact = {"tuned_rate_log10": rates, "tuned_rate_log10_stderr": 0 * rates + ERROR}
    exact |= {
        "outputs_scale": scale,
        "outputs_scale_stderr": ERROR * scale,
        "located": (rates.dims, rates.values * 0 + 64),
    }
    return dataset.assign(exact | {"learns": (rates.dims, np.ones(rates.shape, dtype=bool))})


def _of_length(**powers):
    return lambda runs: {"training_length": of_length(runs["training_length"], **powers)}


def _carried(rule, loss):
    """Every net has so much more loss at the carried rate than at the unchanged one."""

    def control(runs):
        dataset, spread = many_draws(runs["learning_rate_transfer"])
        unchanged = 0.5 * dataset["loss"].sel(rule="unchanged").fillna(0.0).clip(max=1.0)
        losses = dataset["loss"].copy()
        losses.loc[{"rule": "unchanged"}] = unchanged
        losses.loc[{"rule": rule}] = (unchanged + loss + spread).transpose(*unchanged.dims)
        return {"learning_rate_transfer": dataset.assign(loss=losses, loss_slope=0 * dataset["loss_slope"])}

    return control


def _cheap(rule):
    """Nets of every optimizer learn, and the rule costs nothing."""

    def control(runs):
        changed = {}
        for name in dict.fromkeys(check.run for check in CLAIMS["E4a"].checks):
            dataset, spread = many_draws(runs[name])
            losses = 0 * dataset["loss"].fillna(0.0).clip(max=1.0) + 0.5 + spread
            rates = dataset["rate_log10"].copy()
            rates.loc[{"rule": rule}] = rates.loc[{"rule": rule}].fillna(-1.0)
            exact = {name: 0 * dataset[name].fillna(0.0) for name in ("loss_slope", "decades_off_stderr")}
            changed[name] = dataset.assign(exact | {"loss": losses, "rate_log10": rates})
            changed[name].attrs["tuning_seeds"] = str(dataset.sizes["draw"])
        return changed

    return control


def base_rates_move(family):
    """Of this family, which has learned, base rates move under every table by an octave with every doubling."""

    def control(runs):
        dataset = runs[hyperparameters.NAME].isel(family=[0])
        changed = {}
        for along in hyperparameters.DIRECTIONS:
            sizes, name = dataset[along] / dataset[along][0], f"tuned_rate_log10_by_{along}"
            changed[name] = (0 * dataset[name] + np.log10(sizes)).transpose(*dataset[name].dims)
            changed[f"{name}_stderr"] = 0 * dataset[f"{name}_stderr"] + ERROR
            changed[f"located_by_{along}"] = 0 * dataset[f"located_by_{along}"] + 64
            changed[f"tuned_loss_by_{along}"] = 0 * dataset[f"tuned_loss_by_{along}"]
        return {hyperparameters.NAME: dataset.assign(changed).assign_coords(family=[family])}

    return control


CONTROLS = {
    **{claim.id: _of_exponent(claim.id) for claim in printed_tables.CLAIMS},
    "E4a": _cheap("step_outputs"),
    "E4b": _cheap("starting"),
    "E3a": _of_length(),
    "E3b": _of_length(in_steps=-0.2),
    "E3c": _of_length(in_batch=0.5),
    **{claim: partial(first_steps_are_right, claim=claim) for claim in ("E1a", "E1b", "E1c", "E1d")},
    **{claim: _named_by_outputs(claim) for claim in ("E2", "E2b")},
    **{claim: base_rates_move("residual") for claim in ("E5a", "E5b")},
    **{claim: base_rates_move("gpt") for claim in ("E5c", "E5d")},
    "A21b": _tuned("A21b"),
    **{claim: _tuned(claim) for claim in ("T1", "T2", "T3", "T4")},
    "T7": stable_rates_are_best,
    "T6a": _carried("three_halves", -0.1),
    "T6b": _carried("finite_depth", 0.1),
    "T6c": _carried("stable_ratio", 0.1),
}
