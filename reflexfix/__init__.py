"""A sandboxed code-repair tool: write, test in a container, reflect, try again."""

__version__ = "0.1.0"
