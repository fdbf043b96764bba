"""What `tools/dev estimate` says of types: step_types.py <fitted stage's text>."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
from devkit.step_types import StepTypes  # noqa: E402

found = StepTypes(pathlib.Path(sys.argv[1]).read_text())
print(f"forward {next(iter(found.streams), 'none')}, copied {found.copied_bytes} bytes")
