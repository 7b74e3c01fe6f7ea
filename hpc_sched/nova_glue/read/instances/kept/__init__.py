"""The VMs of each cell, kept between requests and corrected by what changed since."""
