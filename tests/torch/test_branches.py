"""Where branches end, in blocks as programs write them: a factor belongs there once, and nowhere else."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra torch")

import meanfield.torch as mft  # noqa: E402
from meanfield.torch.parts import branch_ends, residual_blocks  # noqa: E402
from tests.torch import models  # noqa: E402

nn = torch.nn


def linear(outputs, inputs):
    return nn.Linear(inputs, outputs, bias=False)


class Parts(nn.Module):
    """A module of these parts."""

    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


class SwiGLU(Parts):
    """As Llama's own program names it: w2 is last in the pass, and w3 in the order of making."""

    def __init__(self, n, h):
        super().__init__(w1=linear(h, n), w2=linear(n, h), w3=linear(h, n))


class GroupedAttention(Parts):
    def __init__(self, n):
        super().__init__(wq=linear(n, n), wk=linear(n // 2, n), wv=linear(n // 2, n), wo=linear(n, n))


class ToOut(Parts):
    def __init__(self, n):
        super().__init__(
            norm=nn.LayerNorm(n), to_qkv=linear(3 * n, n), to_out=nn.Sequential(linear(n, n), nn.Dropout())
        )


class FeedForward(Parts):
    def __init__(self, n):
        super().__init__(net=nn.Sequential(nn.LayerNorm(n), linear(4 * n, n), nn.GELU(), linear(n, 4 * n)))


class Mixture(Parts):
    def __init__(self, n, shared=True):
        experts = nn.ModuleList([SwiGLU(n, 2 * n) for _ in range(3)])
        super().__init__(gate=linear(3, n), experts=experts, **({"shared": SwiGLU(n, 2 * n)} if shared else {}))


class Block(Parts):
    pass


class Wrapped(Parts):
    """PyTorch's attention in a module of one's own."""

    def __init__(self, n):
        super().__init__(inner=nn.MultiheadAttention(n, 2))


class Bottleneck(Parts):
    """As the first of a ResNet-50: its inputs are as many as the channels within."""

    def __init__(self, n):
        super().__init__(
            conv1=nn.Conv2d(n, n, 1), bn1=nn.BatchNorm2d(n), conv2=nn.Conv2d(n, n, 3), bn2=nn.BatchNorm2d(n)
        )
        self.conv3, self.bn3 = nn.Conv2d(n, 4 * n, 1), nn.BatchNorm2d(4 * n)
        self.downsample = nn.Sequential(nn.Conv2d(n, 4 * n, 1), nn.BatchNorm2d(4 * n))


class Mixer(Parts):
    """A branch over 16 tokens and one over n channels."""

    def __init__(self, n):
        rows = {name: nn.Sequential(linear(2 * size, size), nn.GELU(), linear(size, 2 * size))
                for name, size in (("tokens", 16), ("channels", n))}  # fmt: skip
        super().__init__(norm1=nn.LayerNorm(n), tokens=rows["tokens"], norm2=nn.LayerNorm(n), channels=rows["channels"])


class Flat(Parts):
    """Two branches whose layers all stand in the block."""

    def __init__(self, n):
        super().__init__(ln_1=nn.LayerNorm(n), qkv=linear(3 * n, n), out=linear(n, n), ln_2=nn.LayerNorm(n))
        self.up, self.down = linear(4 * n, n), linear(n, 4 * n)


BLOCKS = {
    "llama": (
        lambda n: Block(attention=GroupedAttention(n), feed_forward=SwiGLU(n, 3 * n)),
        "attention.wo feed_forward.w2",
    ),
    "mixture": (
        lambda n: Block(mix=Mixture(n)),
        "mix.experts.0.w2 mix.experts.1.w2 mix.experts.2.w2 mix.shared.w2",
    ),
    "mixture alone": (
        lambda n: Block(mix=Mixture(n, shared=False)),
        "mix.experts.0.w2 mix.experts.1.w2 mix.experts.2.w2",
    ),
    "own attention": (lambda n: Block(attn=Wrapped(n)), "attn.inner"),
    "pytorch": (lambda n: nn.TransformerEncoderLayer(n, 2), "self_attn linear2"),
    "resnet": (lambda n: models.BasicBlock(n, n), "bn2"),
    "stage": (lambda n: models.BasicBlock(n // 2, n, 2), "bn2"),
    "bottleneck": (Bottleneck, "bn3"),
    "bottleneck in a row": (
        lambda n: Block(
            body=nn.Sequential(nn.Conv2d(n, n, 1), nn.BatchNorm2d(n), nn.Conv2d(n, 4 * n, 1), nn.BatchNorm2d(4 * n)),
            shortcut=nn.Conv2d(n, 4 * n, 1),
        ),
        "body.3",
    ),
    "mixer": (Mixer, "tokens.2 channels.2"),
    "row": (
        lambda n: Block(body=nn.Sequential(nn.Conv2d(n, n, 3), nn.BatchNorm2d(n), nn.ReLU(), nn.Conv2d(n, n, 3))),
        "body.3",
    ),
    "row with norm": (
        lambda n: Block(body=nn.Sequential(nn.Conv2d(n, n, 3), nn.ReLU(), nn.Conv2d(n, n, 3), nn.BatchNorm2d(n))),
        "body.3",
    ),
    "two layers": (lambda n: Block(norm=nn.LayerNorm(n), first=linear(n, n), second=linear(n, n)), "second"),
    "wide layers": (lambda n: Block(up=linear(4 * n, n), down=linear(n, 4 * n)), "down"),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_what_joins_the_stream(name):
    make, expected = BLOCKS[name]
    model = nn.Sequential(make(8), make(8))
    found = branch_ends(model, residual_blocks(model), set())
    assert sorted(found.values()) == sorted(f"{block}.{end}" for block in "01" for end in expected.split())


def test_lists_of_branches_are_the_blocks():
    def model(n, depth):
        layers = nn.ModuleList([nn.ModuleList([ToOut(n), FeedForward(n)]) for _ in range(depth)])
        return Parts(patches=linear(n, 12), layers=layers, head=linear(5, n))

    assert residual_blocks(model(8, 3)) == ["layers.0", "layers.1", "layers.2"]
    groups = mft.parameter_groups(model(32, 6), model(16, 2), lr=0.01)
    assert groups.sizes == "width x 2 (r_n), depth 2 -> 6 blocks (r_L = 3)"
    factors = {edit.where: (edit.value, len(edit.places)) for edit in groups.edits if edit.what == "multiplier"}
    third = pytest.approx(1 / 3)
    assert factors == {"layers.*.0.to_out.0": (third, 6), "layers.*.1.net.3": (third, 6), "head": (0.5, 1)}


def test_stages_in_a_list_are_no_branches():
    model = nn.ModuleList([nn.ModuleList([FeedForward(8), FeedForward(8)]), nn.ModuleList([FeedForward(8)])])
    assert residual_blocks(model) == ["0.0", "0.1", "1.0"]


def test_layers_that_may_end_several_branches_are_refused_and_may_be_said():
    model, base = (nn.Sequential(*[Flat(n) for _ in range(n // 8)], linear(5, n)) for n in (24, 8))
    with pytest.raises(
        ValueError, match=r"any of '0.out', '0.down' may end a branch of its block: say which do, roles"
    ):
        mft.parameter_groups(model, base, lr=0.01)
    roles = {"*.out.weight": "projection", "*.down.weight": "projection"}
    groups = mft.parameter_groups(model, base, lr=0.01, roles=roles)
    factors = {edit.where: len(edit.places) for edit in groups.edits if edit.what == "multiplier"}
    assert factors == {"*.out": 3, "*.down": 3, "3": 1}
    labels = groups.labels()
    assert [labels[f"0.{name}.weight"] for name in ("qkv", "out", "up")] == ["hidden", "projection", "hidden"]


def test_experts_in_one_tensor_end_a_branch_together():
    class Experts(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.up, self.down = nn.Parameter(torch.randn(3, n, 4 * n)), nn.Parameter(torch.randn(3, 4 * n, n))

    def model(n):
        return nn.Sequential(Block(norm=nn.LayerNorm(n), experts=Experts(n)), linear(5, n))

    labels = mft.parameter_groups(model(16), model(8), lr=0.01).labels()
    assert labels["0.experts.up"] == labels["0.experts.down"] == "projection"


def test_a_branch_of_one_size_is_asked_for():
    """Of tokens, which no width makes more: the tables have no column for it, and no factor of depth is set."""

    def model(n, depth):
        return nn.Sequential(linear(n, 5), *[Mixer(n) for _ in range(depth)], linear(3, n))

    with pytest.raises(ValueError, match=r"'1.tokens.0.weight' is taken for 'hidden'.*let both its sides grow"):
        mft.parameter_groups(model(64, 4), model(32, 2), lr=0.01)
    with pytest.warns(UserWarning, match=r"'1.tokens.0.weight'.* keep the base model's values, within blocks: where"):
        groups = mft.parameter_groups(model(64, 4), model(32, 2), lr=0.01, roles={"*.tokens.*": "fixed"})
    factors = {edit.where: (edit.value, len(edit.places)) for edit in groups.edits if edit.what == "multiplier"}
    assert factors == {"*.channels.2": (0.5, 4), "5": (0.5, 1)}
