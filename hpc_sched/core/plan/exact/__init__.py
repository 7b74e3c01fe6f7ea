"""The exact plan: tables of savings over the tree of switches, and the best plan in them."""
