"""How the samples of one batch correlate, and the losses under which a batch makes its step."""

from dataclasses import asdict, dataclass
from typing import Any

from meanfield.common.validation import require_choice, require_finite, settle

LABELS = ("independent", "teacher")
LOSSES = ("squared", "cross_entropy")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The law of a batch's inputs and labels across its samples i = 1 .. B, the same for every draw.

    Inputs x_i = sqrt(1 - rho) v_i + sqrt(rho) u, with v_i and u white Gaussian (fully-connected nets then scale every
    sample as they do one alone). Labels at output coordinate t have variance 1 about a mean that all samples share:

        y_ti = m mu_t + g_ti,  mu ~ N(0, I) once per draw, so that E y_ti y_tj = m^2 + E g_ti g_tj.

    Args:
        input_correlation: rho, from 0 (independent samples) to 1 (B copies of one).
        labels: "independent", g ~ N(0, 1) for every sample and coordinate; or "teacher", a linear map of the input,
            g_ti = sum_c T_tc x_ci / sqrt(C_0) with T ~ N(0, 1) once per draw, at every output site a T of its own for
            the input at that site (under a pooled readout one T for the whole input): labels correlate as inputs do,
            E g_ti g_tj = x_i . x_j / C_0.
        label_mean: m, the root mean square of the mean over coordinates.

    Raises:
        TypeError, ValueError: a correlation outside 0 .. 1, a mean below 0, numbers that are not real, unknown labels.

    Source: Zhang et al. 2026, Lemma 4 and its remark, section B.2 (m = 0).
    """

    input_correlation: float = 0.0
    labels: str = "independent"
    label_mean: float = 0.0

    def __post_init__(self) -> None:
        for name in ("input_correlation", "label_mean"):
            settle(self, **{name: require_finite(name, getattr(self, name), "a real number")})
        if not 0 <= self.input_correlation <= 1:
            raise ValueError(
                f"input_correlation is {self.input_correlation:g}; it must be from 0 to 1: samples share a part of "
                "their inputs, and more than two cannot all be anticorrelated"
            )
        if self.label_mean < 0:
            raise ValueError(
                f"label_mean is {self.label_mean:g}; it must be at least 0, as the sign of the mean is drawn"
            )
        require_choice("labels", self.labels, LABELS)

    @property
    def has_plain_labels(self) -> bool:
        """Whether labels are independent of each other and of all else, with mean 0."""
        return self.labels == "independent" and self.label_mean == 0

    def describe(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)


# Independent samples with independent labels of mean 0: what the papers assume.
PLAIN = Batch()


def require_classes(loss: str, outputs: int) -> None:
    """Raise ValueError for the cross-entropy of a single output, whose one class has probability 1 whatever it is."""
    if loss == "cross_entropy" and outputs == 1:
        raise ValueError(
            "the net has one output, whose cross-entropy is 0 whatever the net does, without slope or curvature; give "
            "it outputs=2 or more, one for each class, or take loss 'squared'"
        )


def require_batch(batch: Batch, loss: str, inputs_given: bool, input_law: str = "white") -> None:
    """Raise TypeError or ValueError unless the loss exists, takes such labels, and inputs are given in one way.

    Tokens (`meanfield.nets.net.INPUT_LAWS`) are neither correlated nor taught by a linear map.
    """
    if not isinstance(batch, Batch):
        raise TypeError(f"batch is {batch!r}; it must be a Batch, the law of inputs and labels across samples")
    if inputs_given and batch.input_correlation:
        raise ValueError("inputs are given, so input_correlation has nothing to correlate: leave one of them out")
    if input_law == "tokens" and (batch.input_correlation or batch.labels == "teacher"):
        raise ValueError(
            f"{batch} asks for inputs that correlate as Gaussian ones do, or labels that are linear in them; this net "
            "takes one-hot tokens: leave input_correlation and labels out, or give inputs"
        )
    require_choice("loss", loss, LOSSES)
    if loss == "cross_entropy" and not batch.has_plain_labels:
        raise ValueError(
            f"loss 'cross_entropy' takes classes, drawn uniformly for every sample; {batch} asks for other labels: "
            "leave labels and label_mean out, or take loss 'squared'"
        )
