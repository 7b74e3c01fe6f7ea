"""What Nova requests of Placement; the trees of hosts, their candidates and free amounts."""
