"""The output term at leading order in 1/channels: what the outputs drive where they are as many as channels."""
