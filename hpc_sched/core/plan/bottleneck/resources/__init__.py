"""The same within bounds on what plans use: harm to others, or leaves."""
