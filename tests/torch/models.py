"""Small models as users of PyTorch write them: a ResNet with batch normalisation, and a GPT with tied embeddings."""

import torch
from torch import nn
from torch.nn import functional


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu, self.downsample = nn.ReLU(inplace=True), None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """As torchvision has it, of two stages of ``depth`` blocks."""

    def __init__(self, depth=1, channels=4, classes=3):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 1, 1)
        self.layer1 = nn.Sequential(*[BasicBlock(channels, channels) for _ in range(depth)])
        wide = [
            BasicBlock(channels, 2 * channels, 2),
            *[BasicBlock(2 * channels, 2 * channels) for _ in range(depth - 1)],
        ]
        self.layer2 = nn.Sequential(*wide)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(2 * channels, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(self.avgpool(x).flatten(1))


class UnnormalisedResNet(ResNet):
    """The same without batch normalisation."""

    def __init__(self, depth=1, channels=4, classes=3):
        super().__init__(depth, channels, classes)
        for module in list(self.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.BatchNorm2d):
                    setattr(module, name, nn.Identity())


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.dropout, self.resid_dropout = heads, dropout, nn.Dropout(dropout)

    def forward(self, x):
        shape = (*x.shape[:2], self.heads, -1)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.c_attn(x).split(x.shape[2], dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).reshape(x.shape)))


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), CausalSelfAttention(width, heads, dropout)
        self.ln_2, self.mlp = (
            nn.LayerNorm(width),
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """As nanoGPT has it: tied embeddings, initial weights of its own, and logits and the loss as its outputs."""

    def __init__(self, depth=2, width=8, heads=2, vocabulary=11, length=6, dropout=0.0):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(vocabulary, width),
                "wpe": nn.Embedding(length, width),
                "drop": nn.Dropout(dropout),
                "h": nn.ModuleList([Block(width, heads, dropout) for _ in range(depth)]),
                "ln_f": nn.LayerNorm(width),
            }
        )
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._draw)

    def _draw(self, module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.1)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.normal_(module.bias, std=0.1)

    def forward(self, tokens, targets=None):
        positions = torch.arange(tokens.shape[1])
        x = self.transformer.drop(self.transformer.wte(tokens) + self.transformer.wpe(positions))
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        if targets is None:
            return logits
        return logits, functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def images(samples=6, size=6, classes=3, seed=0):
    """A batch of white images and labels."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, 1, size, size, generator=generator)
    return x, torch.randint(classes, (samples,), generator=generator)


def tokens(samples=3, length=6, vocabulary=11, seed=0):
    """A batch of tokens and those behind them."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(vocabulary, (samples, length + 1), generator=generator)
    return drawn[:, :-1], drawn[:, 1:]


def token_loss(logits, targets):
    """The mean over tokens."""
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
