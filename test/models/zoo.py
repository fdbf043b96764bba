"""Model folder -> PyTorch module of the same architecture, for benches (tools/dev bench)."""

import definitions as d
import library_models as lib

MODELS = {
    "mlp-digits": d.MLP,
    "logits-only": d.Logits,
    "cnn-digits": d.CNN,
    "resnet-tiny": d.ResNet,
    "resnet-mini": lib.ResNet,
    "gpt-tiny": lambda: d.GPT(2, 48, 4, 96, 32),
    "gpt-mini": lambda: d.GPT(4, 96, 4, 256, 64),
    "gpt-dropout": lambda: d.GPT(2, 64, 4, 256, 64, dropout=0.2),
    "llama-tiny": d.Llama,
    "llama-mini": lib.Llama,
    "bert-mini": lib.Bert,
    "vit-mini": lib.ViT,
    "lstm-chars": lib.CharLSTM,
    "dlrm-mini": d.DLRM,
    "unet-mini": d.UNet,
    # No recorded run: `tools/dev bench` exports them, to measure the resident memory of whole processes.
    "gpt2-124m": lambda: d.GPT(12, 768, 12, 50304, 1024),
    "gpt-resident": lambda: d.GPT(6, 384, 6, 8192, 256),
}
