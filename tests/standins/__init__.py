"""Stand-ins for what cannot be had in a test: the model's provider."""
