"""Commands about groups on a cloud: fits, group show, explain, snapshot save."""
