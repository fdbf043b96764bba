"""Small programs, of the kinds that people export (programs.py)."""

from devkit.zoo_models import program_blocks, program_blocks_more, program_flow, program_forms, program_images, program_kinds, program_kinds_states, program_layers, program_learned, program_loops, program_losses, program_mixes, program_options, program_penalties, program_places, program_published, program_recurrences, program_reports, program_scripts, program_scripts_layers, program_scripts_states, program_scripts_systems, program_scripts_weights, program_selections, program_sequences, program_strange, program_structures, program_systems, program_values  # noqa: F401
from devkit.zoo_models.programs import CASES  # noqa: F401
