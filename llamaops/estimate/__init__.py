"""Work out what an engine will allocate, from a model's header and its settings.

May import `launch`, `facts` and `schema`; never touches the machine: everything here is arithmetic on
what was read. To describe an architecture, add a line to `architectures.py`; a new kind of block is a
function in `mixers.py` or `recurrent_mixers.py`.
"""
