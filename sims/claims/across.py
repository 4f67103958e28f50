"""Claims that rest on runs of several studies, each judged by judges of its own."""

from meanfield.verification import Check, Claim, Kind, checks, coordinate_checks, spectral_products, tuned_rates
from sims import update_orders
from sims.transformer_depth import claims as transformer_depth

CLAIMS = (
    Claim(
        id="A20c",
        kind=Kind.AS_STATED,
        source="Zhang et al. 2026, section 4.5",
        statement="normalisation placement has minimal effect on the exponent of eta* over depths that are trained: "
        "slopes differ by less than a tenth (judged: tuned rates of our own nets over 2 .. 16 units, and drawn eta* at "
        "initialisation over 4 .. 32)",
        printed='"In ViTs, Pre-LN and Post-LN yield similar exponents (-1.131 vs -1.178, 4.0% difference), '
        'indicating that normalization placement has minimal effect on depth scaling" (section 4.5)',
        hypotheses="the paper tunes ViTs, whose slopes are -1.131 and -1.178; a tenth is our reading of 'minimal'",
        checks=(
            *checks(tuned_rates.SIMULATION, tuned_rates.judge_placement),
            *checks(transformer_depth.NAME, transformer_depth.judge_placement),
        ),
    ),
    Claim(
        id="S3a",
        kind=Kind.AS_STATED,
        source="Zheng et al. 2026, condition B.2",
        statement="k = 3 obeys the rule of k = 2: weights, updates and their products after one step, and, as at k = "
        "2, all orders of a block's update are of order one after ten steps of SGD, AdamW and Muon",
        printed='"extending residual blocks from two layers to a general fixed depth k >= 2 does not change the '
        'algorithmic realization of the muP principle" (appendix B.2.2)',
        hypotheses=f"linear nets; products of all nine optimizers, {spectral_products.NETS}; orders "
        f"{update_orders.NETS}",
        checks=(
            *spectral_products.conditions((*spectral_products.PRODUCTS, "C2.3"), "--block-depth", "3", times=10),
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
        hypotheses=f"k = 1: all nine optimizers, ten steps (SSO: five), {coordinate_checks.NETS} (Lion and SOAP: 4 .. "
        "64; SOAP with an epsilon of 0.002, S5a). Second "
        "order: Muon without momentum, k = 2, ten steps on two samples and one output, 4 .. 32 blocks; under "
        "1/sqrt(L) it falls as about L^(-0.8), faster than the L^(-1/2) of norms, as the first step's overlaps (S9) "
        "still show",
        checks=(
            *coordinate_checks.OF_ONE_LAYER,
            Check(update_orders.NAME, update_orders.judge_second_order, ("--optimizers", update_orders.SETTLED)),
        ),
    ),
)
