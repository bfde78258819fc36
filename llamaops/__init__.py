"""llamaops proves, boundary by boundary, that a llama.cpp installation works."""

__version__ = "0.1.0"
