"""Pages of reports: one HTML file that loads nothing. Needs packages of the extra ``sim``."""
