"""One verb each: llamaops without a command line.

An operation takes what it needs as arguments, reports progress through a callback, and returns a value
or raises an error of `llamaops.errors`. It may import every package before it, and never prints, exits
or reads the command line. To add one, write a module named after its verb and a thin command in `cli`.
"""
