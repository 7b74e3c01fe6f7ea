"""The server groups of a snapshot: their members, and what moves would change."""
