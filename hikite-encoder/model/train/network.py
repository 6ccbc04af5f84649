"""The encoder as a PyTorch module: BERT layers, the mean over the tokens, unit length."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, INNER, POSITIONS = 384, 12, 1536, 96


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.mix = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.mix_norm, self.norm = nn.LayerNorm(WIDTH, 1e-12), nn.LayerNorm(WIDTH, 1e-12)

    def forward(self, x, mask):
        heads = lambda linear: linear(x).view(*x.shape[:2], HEADS, -1).transpose(1, 2)
        seen = F.scaled_dot_product_attention(heads(self.query), heads(self.key), heads(self.value), attn_mask=mask)
        x = self.mix_norm(x + self.mix(seen.transpose(1, 2).reshape(x.shape)))
        return self.norm(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    """`words` has a row for each word piece, `japanese` for each Japanese piece; the rows of the latter follow."""

    def __init__(self, words, japanese, layers):
        super().__init__()
        self.words, self.japanese = nn.Parameter(words), nn.Parameter(japanese)
        self.positions = nn.Parameter(torch.zeros(POSITIONS, WIDTH))
        self.norm = nn.LayerNorm(WIDTH, 1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.dropout = 0.0

    def table(self, rows):
        """Returns the embeddings of the rows that occur, and where in them each row is."""
        unique, inverse = torch.unique(rows, return_inverse=True)
        split = int((unique < len(self.words)).sum())
        taken = [self.words[unique[:split]], self.japanese[unique[split:] - len(self.words)]]
        return torch.cat(taken), inverse

    def forward(self, rows, embedded=None):
        seen = rows != 0
        if embedded is None:
            taken, at = self.table(rows)
            embedded = F.embedding(at, taken)
        x = self.norm(embedded + self.positions[: rows.shape[1]])
        x = F.dropout(x, self.dropout, self.training)
        for layer in self.layers:
            x = layer(x, seen[:, None, None, :])
        weight = seen[..., None].to(x.dtype)
        return F.normalize(((x * weight).sum(1) / weight.sum(1)).float(), dim=-1)

    def shallow(self, keep):
        """Returns a copy with some of the layers."""
        student = copy.deepcopy(self)
        student.layers = nn.ModuleList(student.layers[at] for at in keep)
        return student


def base(folder):
    """Reads the published model; each Japanese piece starts as a weighted mean of eight English words."""
    arrays = np.load(folder / "base.npz")
    tensor = lambda name: torch.from_numpy(arrays[name].astype(np.float32))
    words = torch.from_numpy(arrays["table"].astype(np.float32) * arrays["table_scale"])
    start = np.load(folder / "japanese_start.npz")
    nearest = words[torch.from_numpy(start["ids"].astype(np.int64))]
    model = Encoder(words, (nearest * torch.from_numpy(start["w"])[..., None]).sum(1), 6)
    with torch.no_grad():
        model.positions.copy_((tensor("embeddings.position_embeddings.weight")
                               + tensor("embeddings.token_type_embeddings.weight")[0])[:POSITIONS])
        model.norm.load_state_dict({p: tensor(f"embeddings.LayerNorm.{p}") for p in ("weight", "bias")})
        names = {"query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
                 "mix": "attention.output.dense", "mix_norm": "attention.output.LayerNorm",
                 "up": "intermediate.dense", "down": "output.dense", "norm": "output.LayerNorm"}
        for at, layer in enumerate(model.layers):
            for ours, theirs in names.items():
                state = {p: tensor(f"encoder.layer.{at}.{theirs}.{p}") for p in ("weight", "bias")}
                getattr(layer, ours).load_state_dict(state)
    return model
