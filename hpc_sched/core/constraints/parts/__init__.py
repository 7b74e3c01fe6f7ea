"""The constraints on parts of a group, each below one switch: segments and balance."""
