"""A notes app whose text a model continues and sums up: `python -m examples.desktop [MODEL]`."""
