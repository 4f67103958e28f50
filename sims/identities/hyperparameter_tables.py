"""Whether every cell of the hyperparameter tables of Zheng et al. 2026 follows from the norms of updates."""

from meanfield.verification import Claim, Judges, Kind, Ruling, Verdict, checks, on_examples
from sims.common.hyperparameter_tables import PrintedCell, printed_cells

JUDGES = Judges("Zheng et al. 2026")


@JUDGES.decide(
    claim="Every cell of the hyperparameter tables follows from the initial norms of eq. 6 and the norms of its "
    "optimizer's updates",
    brief="Every cell of the hyperparameter tables follows from norms of weights and updates",
    rival="some do not",
    source="tables 3-7 and 9-13",
    measured="powers of width and depth in every printed cell, and in a derivation that reads no table; no examples",
)
def judge_derivation(seed: int = 0) -> Ruling:
    cells = printed_cells()
    return _ruling([cell for cell in cells if not cell.agrees], len(cells), "follow")


@JUDGES.decide(
    claim="Tables 7 and 13 put SSO's weights on the sphere |W|_2 = R that its update is derived on",
    rival="some weights lie off it by a power of the width",
    source="appendix C.11",
    measured="powers of width and depth in every printed cell of SSO, and in a derivation from weights of norm R, "
    "which reads no table; no examples",
)
def judge_sphere(seed: int = 0) -> Ruling:
    cells = [cell for cell in printed_cells() if cell.optimizer == "sso"]
    return _ruling([cell for cell in cells if cell.is_off_sphere], len(cells), "follow from weights of norm R")


def _ruling(off: list[PrintedCell], count: int, follow: str) -> Ruling:
    """REFUTED by any cell that is off, and where these are."""
    places = dict.fromkeys(f"table {cell.table}, {cell.optimizer}, {cell.role}" for cell in off)
    named = f"; the others: {'; '.join(places)}" if off else ""
    verdict = Verdict.REFUTED if off else Verdict.CONFIRMED
    evidence = f"{count - len(off)} of {count} cells {follow}{named}"
    return Ruling(verdict, evidence, power="exact: one cell that is off by any power is refuted")


CLAIMS = (
    Claim(
        id="S12",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, tables 3-7 and 9-13, appendices C and D",
        statement="every cell of the hyperparameter tables follows from condition 3.1 or B.1, the initial norms of "
        "eq. 6 and the norms of its optimizer's updates",
        brief="every cell of the tables follows from condition 3.1 or B.1 and eq. 6",
        printed="\"These parameterizations are derived from the optimizers' update rules rather than ad hoc tuning "
        'heuristics" (section 1)',
        hypotheses="those of the conditions: one step on one sample, no momentum, widths of input and output that "
        "stay. SSO's output weights are those of eq. 6, |W|_R = Theta(n), not those of its sphere (S13)",
        checks=checks("identities", on_examples(judge_derivation)),
    ),
    Claim(
        id="S13",
        kind=Kind.PREMISE,
        source="Zheng et al. 2026, appendix C.11, tables 7 and 13",
        statement="the weights that tables 7 and 13 begin with lie on the sphere |W|_2 = R on which appendix C.11 "
        "derives SSO's update",
        brief="the weights of tables 7 and 13 lie on the sphere of SSO's update",
        printed='"R = Theta(sqrt(n_out / n_in)) ... |W_l|_2 = R ... given Equation (6) that ... |W_(L+1)|_R = '
        'Theta(n_in)" (appendix C.11)',
        hypotheses="|W|_2 = R is an RMS operator norm of 1 for every matrix",
        checks=checks("identities", on_examples(judge_sphere)),
        replaced_by="output weights lie a factor n off: |W_(L+1)|_R is n by eq. 6, from which their decay is derived, "
        "and 1 on the sphere, from which their update is. From weights of norm R follow an initial variance of "
        "1/r_n^2 and no scaling of multiplier, rate and decay",
        premise="that one norm of the output weights serves both equations",
    ),
)
