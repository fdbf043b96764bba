"""Models of libraries for `tools/dev zoo`, small and with random weights: nothing is downloaded.

Each module has `CASES`, a list of `Case`. They need the environment of requirements-zoo.txt.
"""

import dataclasses
from collections.abc import Callable

# One module for each library; the names of its cases begin with it.
LIBRARIES = ("programs", "torchvision", "timm", "transformers")


@dataclasses.dataclass(frozen=True)
class Case:
    """A module, what it reads, and its loss."""

    name: str
    # Models that share one implementation; rows of the table.
    family: str
    build: Callable[[], object]
    # Arrays by name, in the order of the module's arguments; the last one holds the targets of the loss.
    feeds: Callable[[], dict]
    # (module, *inputs) -> logits, of which the loss is the cross-entropy; of three dimensions the last one is classes.
    call: Callable
    # `call` gives the loss itself, and the last array is what the program makes of it.
    ends_in_loss: bool = False


def all_cases(libraries=()):
    """Every case of the libraries (of all, where none is named), in order of their tables."""
    import importlib

    return [case for library in LIBRARIES if library in libraries or not libraries for case in importlib.import_module(f"{__name__}.of_{library}").CASES]
