"""A small, tested PyTorch package for a course on positional encoding.

A position signal enters a transformer by one of three doors: it is added to the
embeddings, it rotates queries and keys, or it biases the scores. Each module holds
one idea; import each name from its own module, as in
``from coursekit.sinusoidal import sinusoidal_encoding``.
"""

__version__ = "0.1.0"
