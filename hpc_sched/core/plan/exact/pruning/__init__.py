"""What no good plan uses: leaves and switches that are left out before tables are joined."""
