"""Everything that talks to a container engine: find it, build the image, run one container."""
