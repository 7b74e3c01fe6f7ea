"""Records of the decision log."""
