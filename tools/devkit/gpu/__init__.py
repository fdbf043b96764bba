"""What runs on a machine with a GPU, carried there by `tools/dev bundle`: Python's standard library alone."""
