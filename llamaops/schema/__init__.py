"""The words of a record: types without any I/O.

Everything that is ever written to a file or printed as JSON is a type of this package or is built
from its types by a fact group. The package imports msgspec and the standard library, nothing else of
llamaops but `errors`, and touches no file, clock or process.

To add a field: add it with a string under it. The string is what a reader of the code and a reader
of the JSON Schema sees (`export` copies it into the schema as the description).
"""
