"""Model folder -> PyTorch module of the same architecture, for benches (tools/dev bench)."""

import torch
from torch import nn

import definitions as d


def resnet_mini():
    """ResNet-18 narrowed to 16-24-32-48 channels, as the small image models of the wider collection."""

    class Narrow(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.norm = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
            widths, blocks, last = [(16, 1), (24, 2), (32, 2), (48, 2)], [], 16
            for width, stride in widths:
                blocks += [d.Residual(last, width, stride), d.Residual(width, width, 1)]
                last = width
            self.stages, self.fc = nn.Sequential(*blocks), nn.Linear(48, 10)

        def forward(self, x, y):
            h = self.stages(torch.relu(self.norm(self.stem(x))))
            return nn.functional.cross_entropy(self.fc(h.mean((2, 3))), y)

    return Narrow()


def encoder_layer(width, heads, hidden, norm_first):
    return nn.TransformerEncoderLayer(width, heads, hidden, 0.0, nn.functional.gelu, batch_first=True, norm_first=norm_first)


class Bert(nn.Module):
    """Post-norm encoder with padding mask and a masked-language head."""

    def __init__(self, vocab=260, width=96, layers=3, heads=4, hidden=384, length=64):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(vocab, width), nn.Embedding(length, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(encoder_layer(width, heads, hidden, False) for _ in range(layers))
        self.dense, self.head_norm, self.bias = nn.Linear(width, width), nn.LayerNorm(width), nn.Parameter(torch.zeros(vocab))

    def forward(self, input_ids, labels, attention_mask):
        t = torch.arange(input_ids.shape[1])
        x = self.norm(self.words(input_ids) + self.places(t) + self.kinds(torch.zeros_like(input_ids)))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=attention_mask == 0)
        x = self.head_norm(nn.functional.gelu(self.dense(x))) @ self.words.weight.T + self.bias
        return nn.functional.cross_entropy(x.flatten(0, 1), labels.flatten())


class ViT(nn.Module):
    """Patch embedding, class token, pre-norm encoder, label smoothing written out."""

    def __init__(self, patch=4, image=32, width=64, layers=3, heads=4, hidden=256):
        super().__init__()
        self.patches, self.token = nn.Conv2d(3, width, patch, patch), nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, (image // patch) ** 2 + 1, width))
        self.layers = nn.ModuleList(encoder_layer(width, heads, hidden, True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x, y):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        for layer in self.layers:
            x = layer(x)
        log_p = nn.functional.log_softmax(self.head(self.norm(x)[:, 0]), 1)
        return 0.9 * nn.functional.nll_loss(log_p, y) - 0.1 * log_p.mean()


class TokenLlama(nn.Module):
    """d.Llama at the size of the wider collection, whose labels are the input shifted inside the model."""

    def __init__(self):
        super().__init__()
        self.model = d.Llama(3, 96, 6, 2, 256, 256, 47)

    def forward(self, input_ids, labels):
        return self.model(input_ids[:, :-1], labels[:, 1:])


MODELS = {
    "mlp-digits": d.MLP,
    "logits-only": d.Logits,
    "cnn-digits": d.CNN,
    "resnet-tiny": d.ResNet,
    "resnet-mini": resnet_mini,
    "gpt-tiny": lambda: d.GPT(2, 48, 4, 96, 32),
    "gpt-mini": lambda: d.GPT(4, 96, 4, 256, 64),
    "gpt-dropout": lambda: d.GPT(2, 64, 4, 256, 64, dropout=0.2),
    "llama-tiny": d.Llama,
    "llama-mini": TokenLlama,
    "bert-mini": Bert,
    "vit-mini": ViT,
    "dlrm-mini": d.DLRM,
    "unet-mini": d.UNet,
}
