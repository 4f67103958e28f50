"""Claims that rest on runs of several studies, each judged by judges of its own."""

from meanfield.verification import Check, Claim, Kind
from sims import spectral_condition, table_cells, update_orders
from sims.coordinate_check import claims as coordinate_check

CLAIMS = (
    Claim(
        id="S3a",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition B.2",
        statement="k = 3 obeys the rule of k = 2: weights, updates and their products after one step, and, as at k = "
        "2, all orders of a block's update are of order one after ten steps of SGD, AdamW and Muon",
        printed='"extending residual blocks from two layers to a general fixed depth k >= 2 does not change the '
        'algorithmic realization of the muP principle" (appendix B.2.2)',
        hypotheses=f"linear nets; products of all nine optimizers, {spectral_condition.RUN}; orders "
        f"{update_orders.NETS}",
        checks=(
            *spectral_condition.conditions((*spectral_condition.PRODUCTS, "C2.3"), "--block-depth", "3", times=10),
            *update_orders.all_orders(2, 3),
        ),
    ),
    Claim(
        id="S5c",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, takeaway 1",
        statement="block depth decides the rule for depth: 1/sqrt(L) serves k = 1; at k = 2 second-order terms of Muon "
        "keep their size over ten steps under 1/L and not under 1/sqrt(L) (at the first step they fall under either: "
        "S9)",
        printed='"k = 1 gives the Depth-muP-style scaling, whereas k >= 2 introduces high-order update terms and '
        'requires the stricter CompleteP-style scaling" (takeaway 1)',
        hypotheses=f"k = 1: all nine optimizers, ten steps (SSO: five), {coordinate_check.NETS} (Lion and SOAP: 4 .. "
        "64; SOAP with an epsilon of 0.002, S5a). Second "
        "order: Muon without momentum, k = 2, ten steps on two samples and one output, 4 .. 32 blocks; under "
        "1/sqrt(L) it falls as about L^(-0.8), faster than the L^(-1/2) of norms, as the first step's overlaps (S9) "
        "still show",
        checks=(
            *coordinate_check.OF_ONE_LAYER,
            Check(update_orders.NAME, update_orders.judge_second_order, ("--optimizers", update_orders.SETTLED)),
        ),
    ),
    Claim(
        id="S5d",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, takeaway 2",
        statement="for every optimizer but SGD the learning rates and weight decays of width alone, with the "
        "multiplier 1/L, keep nets flat in depth",
        printed='"For the modern optimizers considered in this paper, except SGD, ... taking the corresponding '
        'width-scaling muP implementation and adding the hidden residual multiplier" (section 4.3)',
        hypotheses="epsilons are as tables 4 and 6 have them: hidden ones scale with the depth, too (S5f). Linear "
        "blocks of k = 2 layers, eight optimizers, ten steps (SSO: five; SOAP with an epsilon of 0.002, S5a), "
        f"{coordinate_check.NETS}; SGD's cells as in S5e",
        checks=(
            *coordinate_check.OF_MANY_LAYERS,
            Check(table_cells.NAME, table_cells.judge_rates_in_depth),
        ),
    ),
)
