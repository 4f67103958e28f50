"""Transformers: D blocks of attention and a feed-forward net on a stream of tokens (Zhang et al. 2026, section 3.5)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from meanfield.common.gaussian_averages import mean_square
from meanfield.common.validation import (
    MOST_LAYERS,
    require_choice,
    require_count,
    require_flag,
    require_positive,
    settle,
)
from meanfield.nets.activations import ACTIVATIONS
from meanfield.nets.layered import HEADS
from meanfield.nets.maps import (
    ATTENTION_SCALES,
    NORMALISATIONS,
    Attention,
    Flatten,
    Gain,
    Gate,
    Linear,
    Map,
    Normalisation,
    Pointwise,
    Pooling,
    Weight,
)
from meanfield.nets.net import Net, Unit
from meanfield.nets.scalings import SCALINGS, branch_multiplier, settled_scaling


@dataclass(frozen=True)
class TokenBranch:
    """A unit of a block, read: [normalisation,] linear, attention or activation, linear[, gain], and what is behind it.

    Attributes:
        before, after: the normalisation of what the branch takes, and that of what the join makes.
        first: the weights below the inner map, side by side: queries, keys and values, or those of hidden units.
        inner: attention, or the activation of hidden units.
        last: the weight above it.
        gain: a number that multiplies the branch and is a weight.
        multiplier: the fixed number that does.
    """

    before: Normalisation | None
    first: Linear
    inner: Attention | Pointwise | Gate
    last: Linear
    gain: Gain | None
    after: Normalisation | None
    multiplier: float

    @classmethod
    def of(cls, unit: Unit) -> TokenBranch:
        """Read a unit.

        Raises:
            ValueError: a unit of another form, of which theory knows nothing.
        """
        no_norm = () if unit.branch[0].normalises else (None,)
        no_gain = () if unit.branch[-1].scales else (None,)
        match (*no_norm, *unit.branch, *no_gain, *(unit.after or (None,))):
            case (
                Normalisation() | None as before,
                Linear() as first,
                Attention() | Pointwise() | Gate() as inner,
                Linear() as last,
                Gain() | None as gain,
                Normalisation() | None as after,
            ):
                return cls(before, first, inner, last, gain, after, unit.multiplier)
        shown = ", ".join(type(part).__name__ for part in unit.maps)
        raise ValueError(
            f"a unit of its blocks is made of {shown}; theory reads blocks of [normalisation,] linear, attention or "
            "activation, linear: simulate this net"
        )

    @property
    def attention(self) -> Attention | None:
        """The inner map where it takes tokens together, and None where it is an activation."""
        match self.inner:
            case Attention() as attention:
                return attention
        return None

    @property
    def gain_below(self) -> float:
        """Variance of an element times the fan-in below the inner map; of attention that of the values."""
        return self.first.weights[-1].variance * self.first.weights[-1].fan_in

    @property
    def gain_above(self) -> float:
        """The same above it."""
        return self.last.weights[0].variance * self.channels

    @property
    def channels(self) -> int:
        """Channels between the inner map and the last weight."""
        return self.last.weights[0].fan_in


class TokenStream(Net):
    """A net of ``depth`` blocks, all with the maps of the first one, on ``tokens`` tokens."""

    depth: int
    tokens: int
    activation: str
    outputs: int
    readout: str

    @property
    @abstractmethod
    def block(self) -> tuple[Unit, ...]:
        """The depth units of the first block."""

    @cached_property
    def branches(self) -> tuple[TokenBranch, ...]:
        """The units of the first block, read."""
        return tuple(map(TokenBranch.of, self.block))

    @cached_property
    def attention(self) -> Attention:
        """The attention of a block."""
        return next(filter(None, (branch.attention for branch in self.branches)))

    @property
    def is_pre_norm(self) -> bool:
        """Whether branches normalise what they take of the stream."""
        return self.branches[0].before is not None

    @cached_property
    def pooling(self) -> Any:
        """The map of the readout that makes one of all tokens, or None."""
        maps = () if self.readout_unit is None else self.readout_unit.branch
        return next((part for part in maps if part.reduces), None)

    @cached_property
    def is_tied(self) -> bool:
        """Whether blocks share weights; two of them tell, where a list of all takes minutes to make."""
        return self.replace(depth=2).is_tied if self.depth > 2 else super().is_tied


NORMS = ("pre", "post")
# How branches are scaled: as those of other residual nets, or as Transformers alone have it.
TRANSFORMER_SCALINGS = (*SCALINGS, "deepnorm", "rezero")
TOKEN_READOUTS = ("pooled", "last", "every", "flatten")
SWIGLU, UNNORMALISED = "swiglu", "none"


def maps_of_readout(readout: str, tokens: int) -> tuple[Map, ...]:
    """What takes the tokens together; where nothing does, every token has outputs of its own."""
    return {"pooled": (Pooling("mean"),), "last": (Pooling("last"),), "flatten": (Flatten(tokens),)}.get(readout, ())


@dataclass(frozen=True, kw_only=True)
class Transformer(TokenStream):
    """Transformer: D blocks of self-attention and a feed-forward net on a stream of tokens, and a linear readout.

    Every block is two depth units, which add a branch f to the stream z of every token t,

        pre-norm    z <- z + a f(norm(z))            post-norm    z <- norm(z + a f(z))
        attention   f(u)_t = W_o [sum_t' P^h_tt' v^h_t']_h,   P^h_tt' = softmax over t' of q^h_t . k^h_t' / size^p
                    q, k, v = W_q u, W_k u, W_v u;  head h owns their channels h size .. (h + 1) size - 1
        FFN         f(u)_t = W_2 sigma(W_1 u_t);   "swiglu": W_2 [silu(W_1 u_t) * (W_3 u_t)]

    and the output is W z, averaged over tokens, of the last one, of every token, or of all tokens at once; pre-norm
    nets normalise z first.
    ``norm`` takes every token by itself: (z - mean) / standard deviation over channels ("layer") or z / root mean
    square ("rms"), or leaves it as it is ("none"); without parameters and with epsilon = 0 in either precision (tokens
    of variance 1 are far above float32's rounding).
    Inputs (inputs, width, tokens) are the embedded tokens. With a ``vocabulary`` of V tokens inputs are one-hot,
    (inputs, V, tokens), and the first unit multiplies them by the embedding E, whose elements have variance 1, so that
    every token's vector E e_v has mean square 1. Outputs are (inputs, outputs), of every token (inputs, outputs,
    tokens); all is dimensionless.

    Weights in order: E, if there is one; W_q, W_k, W_v, W_o, W_1, W_2 ("swiglu": W_1, W_3, W_2) block by block, or once
    if tied, each of shape (out, in); then the readout's. An element has variance 1/fan_in, one of W_2 1/(q fan_in), q
    the gain E[sigma'(G)^2] of the activation, so that the FFN's branch of a token of variance 1 has variance 1 ("relu",
    "linear"; "gelu" 0.93); of "swiglu" q = E[silu(G)^2] = 0.356, which gives variance 1 too.

    Args:
        depth: blocks D, at least 1. Datasets have ``layer`` = 1 .. 2 D, the stream after each residual addition
            (post-norm: after its norm): odd layers behind attention, even ones behind the FFN. Nets with a vocabulary
            have one depth unit more, ``layer`` = 0, the embedded tokens.
        width: n, channels of a token.
        heads: of attention, each of size n / heads.
        tokens: T of a sample.
        ffn: hidden units of the FFN over the width, any positive number; n times it is rounded to a whole number.
        norm: "pre" or "post".
        normalisation: "layer", "rms" or "none", which makes both norms one.
        attention_scale: "inverse_sqrt", p = 1/2, or "inverse", p = 1.
        causal: whether tokens attend only to those before them and to themselves.
        activation: of the FFN, "relu", "linear", "gelu" (exact, z Phi(z)), "silu", "tanh", "erf" or the gated
            "swiglu".
        rotary: whether positions turn channels (i, i + size/2) of queries and keys at token t by t 10000^(-2 i / size).
            Without it, and without a causal mask, nothing depends on the order of tokens.
        scaling: "none", a = 1; "multiplier_sqrt", a = (2 D)^(-1/2); "multiplier_linear", a = 1/(2 D); a number alpha,
            a = (2 D)^(-alpha), where 1/2, 1 and 0 are settled to the names that they have; "init", a = 1 and the
            variance of every weight of a branch divided by 2 D; "deepnorm", of post-norm alone (Wang et al.
            2022), a = (2 D)^(-1/4), as norm(z / a + f(z)) is the same, and the variances of W_v, W_o and the FFN's
            weights times (8 D)^(-1/2); or "rezero" (Bachlechner et al. 2020), a = g, a weight (1,) behind the others of
            its branch that starts at 0, one for every branch, and one for all if tied.
        tied: whether all blocks share their weights (a looped Transformer).
        outputs: M.
        vocabulary: V, or None where inputs are embedded tokens.
        head: variance of the readout's weights, "he" (1/(q n), the q of the FFN, which gives outputs of variance 1/q
            where one token is read), "fan_in" (1/n) or "mup" (1/n^2); under readout "flatten" n T stands for n.
        readout: "pooled", the mean over tokens, "last", the last token, "every", outputs at every token, as for the
            prediction of the next one, or "flatten", all tokens side by side, whose weights (outputs, n T) see channel
            c of token t in column c T + t.
        inputs: samples in the batch; drawn white Gaussian of unit variance over channels and tokens, or, with a
            vocabulary, with every token uniform among its V.

    Raises:
        TypeError, ValueError: a count that is not whole or below 1, an unknown name, heads that do not divide the
            width, pairs of channels that a head of odd size does not have (rotary), a width at which normalisation
            leaves no more than signs (1 for "rms", 1 and 2 for "layer"), a hidden layer without units, or "deepnorm" of
            another norm than "post", or of none.

    Source: Zhang et al. 2026, section 3.5 and appendix D; Wang et al. 2022 (arXiv 2203.00555), figure 2; Bachlechner et
    al. 2020 (arXiv 2003.04887).

    Examples:
        >>> import meanfield as mf
        >>> net = mf.Transformer(depth=2, width=16, heads=4, tokens=8, norm="pre")
        >>> net.input_shape, len(net.weight_shapes)
        ((1, 16, 8), 13)
    """

    depth: int
    width: int
    heads: int = 1
    tokens: int
    ffn: float = 4
    norm: str = "pre"
    normalisation: str = "layer"
    attention_scale: str = "inverse_sqrt"
    causal: bool = False
    activation: str = "relu"
    rotary: bool = False
    scaling: str | float = "none"
    tied: bool = False
    vocabulary: int | None = None
    outputs: int = 10
    head: str = "he"
    readout: str = "pooled"
    inputs: int = 1

    def __post_init__(self) -> None:
        settle(
            self,
            depth=require_count("depth", self.depth, maximum=MOST_LAYERS // 2, why="depth counts the blocks"),
            width=require_count("width", self.width, why="channels of a token"),
            heads=require_count("heads", self.heads, why="heads of attention"),
            tokens=require_count("tokens", self.tokens, why="tokens of a sample"),
            ffn=require_positive("ffn", self.ffn, why="it is the hidden units of the FFN over the width"),
            outputs=require_count("outputs", self.outputs, why="coordinates of the readout"),
            inputs=require_count("inputs", self.inputs, why="samples in the batch"),
            causal=require_flag("causal", self.causal, why="whether tokens attend to earlier ones alone"),
            rotary=require_flag("rotary", self.rotary, why="whether queries and keys are turned by their position"),
            tied=require_flag("tied", self.tied, why="one set of weights, or one for every block"),
        )
        for name, choices in (
            ("norm", NORMS),
            ("normalisation", (*NORMALISATIONS, UNNORMALISED)),
            ("attention_scale", ATTENTION_SCALES),
            ("activation", (*ACTIVATIONS, SWIGLU)),
            ("head", HEADS),
            ("readout", TOKEN_READOUTS),
        ):
            require_choice(name, getattr(self, name), choices)
        settle(self, scaling=settled_scaling(self.scaling, self.additions, TRANSFORMER_SCALINGS))
        if self.vocabulary is not None:
            self._settle_counts(vocabulary="tokens that there are")
        if self.scaling == "deepnorm" and (self.norm != "post" or self.normalisation == UNNORMALISED):
            raise ValueError(
                f"scaling is 'deepnorm', norm {self.norm!r} and normalisation {self.normalisation!r}; its constants "
                "are those of norm(alpha z + f(z)): take norm='post' and 'layer' or 'rms', or another scaling"
            )
        self._check_sizes()

    def _check_sizes(self) -> None:
        """Heads that share the width evenly, pairs for rotary positions, a hidden layer, and something to normalise."""
        if self.width % self.heads:
            fitting = ", ".join(str(heads) for heads in range(1, min(self.width, 64) + 1) if self.width % heads == 0)
            raise ValueError(
                f"heads is {self.heads} at width {self.width}; every head owns width/heads channels, so heads must "
                f"divide the width: choose one of {fitting}, or another width"
            )
        if self.rotary and self.head_size % 2:
            raise ValueError(
                f"rotary positions turn pairs of channels, and a head of width {self.width} / {self.heads} heads has "
                f"{self.head_size}: choose width and heads such that it is even, or rotary=False"
            )
        if self.hidden_units < 1:
            raise ValueError(
                f"ffn is {self.ffn:g} at width {self.width}, which leaves the FFN no hidden unit: give at least "
                f"{1 / self.width:g}"
            )
        for norm in self._normalised:
            norm.channels_above(self.width)

    @property
    def head_size(self) -> int:
        """Channels of a head's queries, keys and values."""
        return self.width // self.heads

    @property
    def hidden_units(self) -> int:
        """The number of hidden units of the FFN."""
        return round(self.ffn * self.width)

    @property
    def grid(self) -> tuple[int, ...]:  # type: ignore[override]
        """Tokens are the sites of a sample."""
        return (self.tokens,)

    @property
    def first_channels(self) -> int:  # type: ignore[override]
        return self.vocabulary or self.width

    @property
    def input_law(self) -> str:  # type: ignore[override]
        return "tokens" if self.vocabulary else "white"

    @property
    def first_layer(self) -> int:  # type: ignore[override]
        """0 where an embedding stands below the blocks."""
        return 0 if self.vocabulary else 1

    @property
    def additions(self) -> int:
        """2 D branches, an attention and an FFN in every block."""
        return 2 * self.depth

    @property
    def multiplier(self) -> float:
        """a, the factor on a branch."""
        return self.additions**-0.25 if self.scaling == "deepnorm" else branch_multiplier(self.scaling, self.additions)

    @cached_property
    def hidden_gain(self) -> float:
        """q, by which variances behind the FFN's activation are divided."""
        if self.activation == SWIGLU:
            return mean_square(ACTIVATIONS["silu"].function, 1.0)
        return ACTIVATIONS[self.activation].gain

    @property
    def head_variance(self) -> float:
        """Variance of the readout's weights."""
        fan_in = self.head_fan_in
        return {"he": 1 / self.hidden_gain / fan_in, "fan_in": 1 / fan_in, "mup": fan_in**-2}[self.head]

    @property
    def head_fan_in(self) -> int:
        """Numbers that an output sees: the channels of a token, or of all."""
        return self.width * (self.tokens if self.readout == "flatten" else 1)

    @cached_property
    def units(self) -> tuple[Unit, ...]:  # type: ignore[override]
        """[Embedding,] attention and FFN, block after block: weights Wq_3 .. W2_3 of block 3, or Wq .. W2 if tied."""
        blocks = (unit for number in range(1, self.depth + 1) for unit in self._block(number))
        return (*self._embedding, *blocks)

    @property
    def _embedding(self) -> tuple[Unit, ...]:
        shape = (self.width, self.first_channels)
        return (Unit((Linear((Weight("embedding", shape, 1.0),)),)),) if self.vocabulary else ()

    @property
    def block(self) -> tuple[Unit, ...]:
        return self._block(1)

    def _block(self, number: int) -> tuple[Unit, ...]:
        label = "" if self.tied else f"_{number}"
        before, after = (self._normalised, ()) if self.norm == "pre" else ((), self._normalised)
        first = len(self._embedding) + 2 * number - 2
        return tuple(
            Unit((*before, *branch), skip, self.multiplier, after)
            for skip, branch in enumerate((self._attention(label), self._ffn(label)), start=first)
        )

    @cached_property
    def readout_unit(self) -> Unit:  # type: ignore[override]
        """[norm,] mean over tokens, the last one, all, or all side by side, and a linear map."""
        before = self._normalised if self.norm == "pre" else ()
        weight = Weight("readout", (self.outputs, self.head_fan_in), self.head_variance)
        return Unit((*before, *maps_of_readout(self.readout, self.tokens), Linear((weight,))))

    def role_of(self, weight: str) -> str:
        """ "input" (of an embedding alone), "hidden" (in any block), "hidden_bias" (of a gain) or "output"."""
        role = {"embedding": "input", "readout": "output"}.get(weight, "hidden")
        return role if len(self.weights[weight].shape) > 1 else f"{role}_bias"

    @property
    def _normalised(self) -> tuple[Map, ...]:
        return () if self.normalisation == UNNORMALISED else (Normalisation(self.normalisation),)

    def _attention(self, label: str) -> tuple[Map, ...]:
        square = (self.width, self.width)
        looks = Attention(self.heads, self.attention_scale, self.causal, self.rotary)
        stacked = Linear(tuple(self._weight(f"W{name}{label}", square) for name in "qkv"))
        return stacked, looks, Linear((self._weight(f"Wo{label}", square),)), *self._gain(f"attention_gain{label}")

    def _ffn(self, label: str) -> tuple[Map, ...]:
        up, down = (self.hidden_units, self.width), (self.width, self.hidden_units)
        gated = self.activation == SWIGLU
        lifted = Linear(tuple(self._weight(f"W{name}{label}", up) for name in ("13" if gated else "1")))
        activated = Gate("silu") if gated else Pointwise(self.activation)
        lowered = Linear((self._weight(f"W2{label}", down, self.hidden_gain),))
        return lifted, activated, lowered, *self._gain(f"ffn_gain{label}")

    def _weight(self, name: str, shape: tuple[int, int], gain: float = 1.0) -> Weight:
        shared = 1.0
        if self.scaling == "init":
            shared = 2.0 * self.depth
        elif self.scaling == "deepnorm" and name[:2] not in ("Wq", "Wk"):
            shared = (8 * self.depth) ** 0.5
        return Weight(name, shape, 1 / (gain * shape[1] * shared))

    def _gain(self, name: str) -> tuple[Map, ...]:
        return (Gain(Weight(name, (1,), 0.0)),) if self.scaling == "rezero" else ()
