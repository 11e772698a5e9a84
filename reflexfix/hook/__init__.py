"""The hook: what is staged is tested in a container, and failing tests become a patch to review."""
