"""Scripts that write parts of the documentation."""
