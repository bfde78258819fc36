"""Measurements of llamaops against what it competes with, as ratios; `make bench` runs them all."""
