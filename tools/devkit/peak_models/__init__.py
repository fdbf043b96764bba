"""Modules whose training steps are compared in bytes (`tools/dev peaks`): one file for each row of the table.

A file defines `CASES`, a list of `Case`. Files are imported in the oracle environment, which holds PyTorch.
"""

import dataclasses
import typing


@dataclasses.dataclass
class Case:
    """One training step, as it is exported, as PyTorch runs it, and as an expert writes it."""

    name: str
    #: () → the module that is exported; its forward takes `feeds` in order
    file: typing.Callable
    #: () → tensors of one batch by the names of the file's inputs; what the file does not take is fed to the loss
    feeds: typing.Callable
    #: (module, feeds) → the loss that is trained
    loss: typing.Callable
    inputs: tuple = ("x", "labels")
    outputs: tuple = ("loss",)
    #: what `lowtide` is told besides the batch
    flags: tuple = ()
    #: (module, feeds) → the loss, computed in as few bytes as an expert needs; None: not known
    hand: typing.Callable | None = None
    #: torch.optim's name
    optimizer: str = "AdamW"
    #: in words: what `hand` does besides updating each parameter as soon as its gradient is there
    by_hand: str = ""


#: Row of the table → module of this folder.
ROWS = {
    "loss on logits": "loss_heads",
    "embedding table": "tables",
    "graph attention": "graph_attention",
    "LSTM": "lstm",
    "mixture of experts": "experts",
    "diffusion U-Net": "diffusion",
    "small GPT": "adapters",
    "frozen backbone": "frozen_backbone",
    "attention": "attention",
    "pictures": "pictures",
    "pairs": "pairs",
}
