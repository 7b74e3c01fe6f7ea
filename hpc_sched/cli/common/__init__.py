"""What several commands share: sources of data, output, argument types."""
