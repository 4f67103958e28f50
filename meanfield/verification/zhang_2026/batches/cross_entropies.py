"""Zhang et al. 2026, section G: what cross-entropy instead of squared loss changes, and what it does not."""

from functools import partial

import numpy as np
import xarray as xr

from meanfield.common.estimates import PowerLaw
from meanfield.common.validation import Array
from meanfield.verification.claims import Claim, Kind, checks
from meanfield.verification.judges import Contest, Judges, contest
from meanfield.verification.series import scale_law
from meanfield.verification.verdicts import Deviation

# Exponents in depth that differ by less are the same.
NEAR = 0.05
# Relative deviation granted to an average over logits: their variance fluctuates by some 5 L / n from net to net, and
# an average over the softmax bends with it.
LOGITS = 0.5
# Excess of the output term over its mean field, per (M + 5) L / n, that of one sample and squared loss.
OUTPUT_EXCESS = 2.0

# The judges of `sims.cross_entropy`.
JUDGES = Judges("Zhang et al. 2026")
findings = JUDGES.findings


def depth_slope(dataset: xr.Dataset, net: str, head: str, loss: str, name: str = "update_energy") -> PowerLaw:
    """Slope in L of (mean over layers of a term)^(-1/2) as drawn: of eta* for the update energy."""
    return scale_law(dataset.sel(net=net, head=head, loss=loss), "depth", name)


def scale_ratio(dataset: xr.Dataset, name: str = "update_energy") -> tuple[xr.DataArray, xr.DataArray]:
    """log of a term under cross-entropy over that under squared loss, and its standard error."""
    entropic, squared = (dataset.sel(loss=loss) for loss in ("cross_entropy", "squared"))
    relative = [at[f"{name}_stderr"] / at[name] for at in (entropic, squared)]
    return xr.apply_ufunc(np.log, entropic[name] / squared[name]), (relative[0] ** 2 + relative[1] ** 2) ** 0.5


@JUDGES.decide
def judge_label_term(dataset: xr.Dataset) -> Contest:
    """Label term is C - 1 = {ratio} times that under squared loss, for both nets, all heads and every depth; rival:
    (1 - 1/C)/C = {rival:.2g}, the ratio of |error|^2 without the 1/M of the squared loss; measured: logarithms of the
    ratio of drawn label terms."""
    logs, stderr = (values.values.ravel() for values in scale_ratio(dataset, "label_term"))
    classes = int(dataset.attrs["classes"])
    ratio, rival = classes - 1, (classes - 1) / classes**2
    made = contest(logs, stderr, claimed=np.log(ratio), rival=np.log(rival)).carried_by(dataset, "label_term")
    mean = float(np.exp(np.average(logs, weights=stderr**-2)))
    return made.saying(f"ratio {mean:.3g} on average", ratio=ratio, rival=rival)


@JUDGES.decide
def judge_prefactor(dataset: xr.Dataset) -> Contest:
    """Under the muP head eta* is (C - 1)^(-1/2) = {factor:.3g} times that under squared loss; rival: equal; measured:
    logarithms of the ratio of drawn update energies, which go as eta*^(-2), of both nets at every depth."""
    at, classes = dataset.sel(head="mup"), int(dataset.attrs["classes"])
    logs, stderr = (values.values.ravel() for values in scale_ratio(at))
    made = contest(logs, stderr, claimed=np.log(classes - 1), rival=0.0, allowance=2 * NEAR)
    words = f"ratios {np.exp(-logs.max() / 2):.3f} .. {np.exp(-logs.min() / 2):.3f}"
    return made.carried_by(at, "update_energy").saying(words, factor=(classes - 1) ** -0.5)


@JUDGES.decide
def judge_exponent(dataset: xr.Dataset) -> Contest:
    """Where outputs vanish, eta* falls with the same exponent in depth under cross-entropy; rival: 1/2 apart, as the
    exponents of labels (-3/2) and of outputs (-2) that drive a step; source: section G; measured: the slope in L
    less that under squared loss, of all nets with the muP head."""
    return _same_exponent(dataset.sel(head="mup"))


def _same_exponent(at: xr.Dataset) -> Contest:
    gaps, stderr, words = _exponent_gaps(at)
    made = Contest(Deviation(gaps, stderr, NEAR), Deviation(np.abs(gaps) - 0.5, stderr, NEAR), apart=0.5)
    return made.carried_by(at, "update_energy").saying(words)


@JUDGES.decide
def judge_exponent_with_outputs(dataset: xr.Dataset) -> Contest:
    """eta* falls with the same exponent in depth where outputs are of order one (MLP, He head), too; rival:
    {steeper:.3f} less steeply: the squared loss's output term steepens its own, by the exact expectations; measured:
    the slope in L of drawn eta* less that under squared loss, of the MLP."""
    at = dataset.sel(net=["MLP"], head="he")
    gaps, stderr, words = _exponent_gaps(at)
    squared = at.sel(net="MLP", loss="squared")
    logs = (np.log(squared[f"{name}_exact"].values) for name in ("label_term", "update_energy"))
    label, update = (-0.5 * np.polyfit(np.log(at["depth"].values), log, 1)[0] for log in logs)
    steeper = float(label - update)
    made = contest(gaps, stderr, claimed=0.0, rival=steeper, allowance=NEAR)
    return made.carried_by(at, "update_energy").saying(words, steeper=steeper)


@JUDGES.decide
def judge_exponent_of_paper_head(dataset: xr.Dataset) -> Contest:
    """With the head of the paper, of variance 1/n behind a pooling, eta* falls with the same exponent in depth under
    both losses; rival: 1/2 apart, as the exponents of labels and of outputs; source: sections 3.1, G; measured: the
    slope in L of drawn eta* less that under squared loss, of the ConvNet."""
    return _same_exponent(dataset.sel(net=["ConvNet"], head="fan_in"))


@JUDGES.decide
def judge_error_of_paper_head(dataset: xr.Dataset) -> Contest:
    """Logits are near zero, and |p - y|^2 = 1 - 1/C = {uniform:.3g}, with the head of the paper, of variance 1/n behind
    a pooling; rival: as the mean field of these logits says, {rival:.4g} at the first depth; source: sections 3.1, G;
    measured: |p - y|^2 of drawn ConvNets at every depth."""
    at = dataset.sel(net="ConvNet", loss="cross_entropy", head="fan_in")
    error, stderr, theory = (at[f"output_error{end}"].values for end in ("", "_stderr", "_mean_field"))
    uniform = 1 - 1 / int(dataset.attrs["classes"])
    made = contest(error, stderr, claimed=uniform, rival=theory).carried_by(at, "output_error")
    words = f"drawn {error.min():.4g} .. {error.max():.4g}, mean field {theory.min():.4g} .. {theory.max():.4g}"
    return made.saying(words, uniform=uniform, rival=theory[0])


def _exponent_gaps(at: xr.Dataset) -> tuple[Array, Array, str]:
    """Of all nets, the slope of eta* under cross-entropy less that under squared loss, its error, both in words."""
    nets = list(map(str, at["net"].values))
    pairs = [
        [scale_law(at.sel(net=net, loss=loss), "depth", "update_energy") for loss in ("cross_entropy", "squared")]
        for net in nets
    ]
    gaps = np.array([entropic.exponent - squared.exponent for entropic, squared in pairs])
    stderr = np.array([float(np.hypot(entropic.stderr, squared.stderr)) for entropic, squared in pairs])
    both = zip(nets, pairs, strict=True)
    words = ", ".join(f"{net} {entropic.exponent:.3f} and {squared.exponent:.3f}" for net, (entropic, squared) in both)
    return gaps, stderr, f"slopes {words} (squared)"


@JUDGES.decide_each({"head": "mup"}, {"head": "he"})
def judge_error(dataset: xr.Dataset, head: str) -> Contest:
    """|p - y|^2 = 1 - 1/C = {uniform:.3g} under the {head_name} head; rival: {gaussian:.4g}, logits of variance 1;
    source: section G; measured: |p - y|^2 of drawn MLPs at every depth."""
    both = dataset.sel(net="MLP", loss="cross_entropy")
    at, uniform = both.sel(head=head), 1 - 1 / int(dataset.attrs["classes"])
    error, stderr = at["output_error"].values, at["output_error_stderr"].values
    gaussian = both["output_error_mean_field"].sel(head="he").values
    granted = LOGITS * at["depth"].values / float(dataset.attrs["width"]) * (gaussian - uniform)
    words = {"uniform": uniform, "gaussian": gaussian[0], "head_name": "muP" if head == "mup" else "He"}
    made = contest(error, stderr, claimed=uniform, rival=gaussian, allowance=granted).carried_by(at, "output_error")
    return made.saying(f"drawn {error.min():.4g} .. {error.max():.4g}", **words)


@JUDGES.decide
def judge_output_term(dataset: xr.Dataset) -> Contest:
    """Output term under the He head is the mean field's, near the label term times (E|p|^2 - 1/C) / (1 - 1/C), but for
    corrections in L/n; rival: that under squared loss; measured: the logarithm of output over label term, of drawn MLPs
    with the He head at every depth."""
    at, squared = (dataset.sel(net="MLP", head="he", loss=loss) for loss in ("cross_entropy", "squared"))
    terms = ("output_term", "label_term")
    logs = np.log((at["output_term"] / at["label_term"]).values)
    stderr = np.hypot(*((at[f"{name}_stderr"] / at[name]).values for name in terms))
    granted = OUTPUT_EXCESS * (dataset.attrs["classes"] + 5) / dataset.attrs["width"] * at["depth"].values
    own, rival = (
        np.log((run["output_term_mean_field"] / run["label_term_mean_field"]).values) for run in (at, squared)
    )
    words = (
        f"A/B {np.exp(logs[0]):.3f} .. {np.exp(logs[-1]):.3f}, mean field {np.exp(own[0]):.3f} .. {np.exp(own[-1]):.3f}"
    )
    made = contest(logs, stderr, claimed=own, rival=rival, allowance=np.log1p(granted))
    return made.carried_by(at, *terms).saying(words)


CLAIMS = (
    Claim(
        id="A18a",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section G, under its premise: logits near zero",
        statement="where logits vanish (muP head), cross-entropy instead of squared error changes the prefactor of "
        "eta* alone, and |p - y|^2 = 1 - 1/C",
        printed='"this choice does not change the depth exponent ... |g|_2^2 = (1 - 1/C)^2 + (C - 1)(1/C)^2 = 1 - '
        '1/C" (appendix G)',
        hypotheses="logits near zero",
        checks=checks("cross_entropy", judge_exponent, partial(judge_error, head="mup")),
    ),
    Claim(
        id="A18b",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section G, for the head of section 3.1",
        statement="with the paper's head, of variance 1/n behind a pooling, logits are near zero: |p - y|^2 = 1 - 1/C",
        printed='"At initialization, logits are near zero, so p = softmax(z) is close to uniform" (appendix G)',
        hypotheses="a linear head of variance 1/n behind global average pooling",
        checks=checks("cross_entropy", judge_error_of_paper_head),
        replaced_by="logits of order one: sites correlate more and more with depth, so that pooling does not remove "
        "them, and |p - y|^2 exceeds 1 - 1/C",
        premise="the softmax is taken at vanishing outputs, which need a head of variance 1/n^2",
    ),
    Claim(
        id="A18c",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section G, for the head of section 3.1",
        statement="with the paper's head, of variance 1/n behind a pooling, eta* under cross-entropy has the exponent "
        "of squared error",
        printed='"this choice does not change the depth exponent, because the derivation only requires that the '
        'logit-gradient has an O(1) second moment" (appendix G)',
        hypotheses="a linear head of variance 1/n behind global average pooling; the whole update, of which outputs of "
        "order one have a part",
        checks=checks("cross_entropy", judge_exponent_of_paper_head),
    ),
)
