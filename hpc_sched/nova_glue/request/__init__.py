"""From a RequestSpec to a decision, and the record of it."""
