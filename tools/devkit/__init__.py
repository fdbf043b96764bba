"""The Python half of tools/dev: set-up, build, check, judge, demo, bench, fuzz."""
