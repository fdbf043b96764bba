"""Models of transformers and torchvision, written out: same parameters, same order of operations as theirs.

The wider collection was recorded with those libraries; benches compare with PyTorch where they are not installed.
tools/dev bench loads the recorded weights into them and compares the first loss with the record.
"""

import torch
from definitions import RMSNorm
from torch import nn
from torch.nn import functional as F


class Named(nn.Module):
    """A module of named parts."""

    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


class BertLayer(nn.Module):
    """Post-norm encoder layer, attention written out ("eager")."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        linear = {name: nn.Linear(width, width) for name in ("query", "key", "value")}
        self.attention = Named(output=Named(dense=nn.Linear(width, width), LayerNorm=nn.LayerNorm(width, eps=1e-12)))
        self.attention.self = Named(**linear)
        self.intermediate = Named(dense=nn.Linear(width, hidden))
        self.output = Named(dense=nn.Linear(hidden, width), LayerNorm=nn.LayerNorm(width, eps=1e-12))

    def forward(self, x, mask):
        b, t, c = x.shape
        own, out = self.attention.self, self.attention.output
        q, k, v = (f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (own.query, own.key, own.value))
        p = F.softmax(torch.matmul(q, k.transpose(2, 3)) * (c // self.heads) ** -0.5 + mask, -1)
        a = torch.matmul(p, v).transpose(1, 2).contiguous().reshape(b, t, c)
        x = out.LayerNorm(out.dense(a) + x)
        return self.output.LayerNorm(self.output.dense(F.gelu(self.intermediate.dense(x))) + x)


class Bert(nn.Module):
    """BertForMaskedLM with a padding mask; the head is tied to the word embedding."""

    def __init__(self, vocab=260, width=96, layers=3, heads=4, hidden=384, length=64):
        super().__init__()
        embeddings = Named(
            word_embeddings=nn.Embedding(vocab, width), position_embeddings=nn.Embedding(length, width),
            token_type_embeddings=nn.Embedding(2, width), LayerNorm=nn.LayerNorm(width, eps=1e-12),
        )  # fmt: skip
        encoder = Named(layer=nn.ModuleList(BertLayer(width, heads, hidden) for _ in range(layers)))
        transform = Named(dense=nn.Linear(width, width), LayerNorm=nn.LayerNorm(width, eps=1e-12))
        predictions = Named(bias=nn.Parameter(torch.zeros(vocab)), transform=transform)
        self.model = Named(bert=Named(embeddings=embeddings, encoder=encoder), cls=Named(predictions=predictions))

    def forward(self, input_ids, labels, attention_mask):
        parts, head = self.model.bert.embeddings, self.model.cls.predictions
        places = torch.arange(input_ids.shape[1])[None]
        x = parts.word_embeddings(input_ids) + parts.token_type_embeddings(torch.zeros_like(input_ids))
        x = parts.LayerNorm(x + parts.position_embeddings(places))
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.model.bert.encoder.layer:
            x = layer(x, mask)
        x = head.transform.LayerNorm(F.gelu(head.transform.dense(x)))
        logits = F.linear(x, parts.word_embeddings.weight, head.bias)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


class LlamaLayer(nn.Module):
    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.size, self.repeats = width // heads, heads // groups
        outs = {"q_proj": heads * self.size, "k_proj": groups * self.size, "v_proj": groups * self.size}
        self.self_attn = Named(**{name: nn.Linear(width, out, bias=False) for name, out in outs.items()})
        self.self_attn.o_proj = nn.Linear(heads * self.size, width, bias=False)
        self.mlp = Named(**{name: nn.Linear(width, hidden, bias=False) for name in ("gate_proj", "up_proj")})
        self.mlp.down_proj = nn.Linear(hidden, width, bias=False)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(width), RMSNorm(width)

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        h, own = self.input_layernorm(x), self.self_attn
        q, k, v = (f(h).view(b, t, -1, self.size).transpose(1, 2) for f in (own.q_proj, own.k_proj, own.v_proj))
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        k, v = (z[:, :, None].expand(-1, -1, self.repeats, -1, -1).reshape(q.shape) for z in (k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + own.o_proj(a.transpose(1, 2).reshape(b, t, -1))
        h = self.post_attention_layernorm(x)
        return x + self.mlp.down_proj(F.silu(self.mlp.gate_proj(h)) * self.mlp.up_proj(h))


class Llama(nn.Module):
    """LlamaForCausalLM: rotary embedding, grouped queries, SwiGLU; the labels are shifted inside."""

    def __init__(self, layers=3, width=96, heads=6, groups=2, hidden=256, vocab=256):
        super().__init__()
        stack = nn.ModuleList(LlamaLayer(width, heads, groups, hidden) for _ in range(layers))
        inner = Named(embed_tokens=nn.Embedding(vocab, width), layers=stack, norm=RMSNorm(width))
        self.model = Named(model=inner, lm_head=nn.Linear(width, vocab, bias=False))
        half = width // heads // 2
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(half) / half), persistent=False)

    def forward(self, input_ids, labels):
        inner = self.model.model
        x = inner.embed_tokens(input_ids)
        angle = torch.arange(input_ids.shape[1])[:, None] * self.frequencies
        angle = torch.cat((angle, angle), 1)
        cos, sin = angle.cos(), angle.sin()
        for layer in inner.layers:
            x = layer(x, cos, sin)
        logits = self.model.lm_head(inner.norm(x))
        labels = F.pad(labels, (0, 1), value=-100)[:, 1:]
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.reshape(-1))


class ViTLayer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Identity(), nn.Linear(hidden, width))

    def forward(self, x):
        h = self.ln_1(x)
        x = x + self.self_attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class ViT(nn.Module):
    """torchvision's VisionTransformer, label smoothing written out."""

    def __init__(self, patch=4, image=32, width=64, layers=3, heads=4, hidden=256):
        super().__init__()
        stack = {f"encoder_layer_{i}": ViTLayer(width, heads, hidden) for i in range(layers)}
        places = nn.Parameter(0.02 * torch.randn(1, (image // patch) ** 2 + 1, width))
        encoder = Named(pos_embedding=places, layers=Named(**stack), ln=nn.LayerNorm(width, eps=1e-6))
        self.net = Named(
            class_token=nn.Parameter(torch.zeros(1, 1, width)), conv_proj=nn.Conv2d(3, width, patch, patch),
            encoder=encoder, heads=Named(head=nn.Linear(width, 10)),
        )  # fmt: skip

    def forward(self, x, y):
        net = self.net
        x = net.conv_proj(x).flatten(2).permute(0, 2, 1)
        x = torch.cat([net.class_token.expand(x.shape[0], -1, -1), x], 1) + net.encoder.pos_embedding
        for layer in net.encoder.layers.children():
            x = layer(x)
        log_p = F.log_softmax(net.heads.head(net.encoder.ln(x)[:, 0]), 1)
        return 0.9 * F.nll_loss(log_p, y) - 0.1 * log_p.mean()


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.relu, self.downsample = nn.ReLU(inplace=True), None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        h = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        h += x if self.downsample is None else self.downsample(x)
        return self.relu(h)


class ResNet(nn.Module):
    """torchvision's ResNet-18, narrowed, without its first pooling."""

    def __init__(self):
        super().__init__()
        stages, last = {}, 16
        for i, (width, stride) in enumerate([(16, 1), (24, 2), (32, 2), (48, 2)]):
            stages[f"layer{i + 1}"] = nn.Sequential(BasicBlock(last, width, stride), BasicBlock(width, width, 1))
            last = width
        self.net = Named(
            conv1=nn.Conv2d(3, 16, 3, 1, 1, bias=False), bn1=nn.BatchNorm2d(16), relu=nn.ReLU(inplace=True), **stages,
            avgpool=nn.AdaptiveAvgPool2d((1, 1)), fc=nn.Linear(last, 10),
        )  # fmt: skip

    def forward(self, x, y):
        net = self.net
        x = net.relu(net.bn1(net.conv1(x)))
        for stage in (net.layer1, net.layer2, net.layer3, net.layer4):
            x = stage(x)
        return F.cross_entropy(net.fc(torch.flatten(net.avgpool(x), 1)), y)


class CharLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(256, 32)
        self.rnn = nn.LSTM(32, 64, num_layers=2, batch_first=True)
        self.head = nn.Linear(64, 256)

    def forward(self, tokens, targets):
        h, _ = self.rnn(self.emb(tokens))
        return F.cross_entropy(self.head(h).flatten(0, 1), targets.flatten())
