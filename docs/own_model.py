"""The example of docs/how_to/your_own_pytorch_model.md: a small GPT of any depth and width, for characters."""

import torch
from torch import nn


class GPT(nn.Module):
    """Pre-norm blocks of attention and a feed-forward layer, with positions, for windows of 16 characters."""

    def __init__(self, depth=4, width=64, characters=96, length=16):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(characters, width), nn.Embedding(length, width)
        how = {"dim_feedforward": 4 * width, "dropout": 0.0, "batch_first": True, "norm_first": True}
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, **how) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, characters):
        length = characters.shape[1]
        x = self.tokens(characters) + self.positions(torch.arange(length, device=characters.device))
        mask = nn.Transformer.generate_square_subsequent_mask(length, x.device, x.dtype)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))
