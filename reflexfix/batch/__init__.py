"""Many problems at once: arms, scores that a sceptic accepts, and nothing lost on the way."""
