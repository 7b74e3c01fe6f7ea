"""What each objective of a plan is worth: to one job, to its neighbours, and to a whole site."""
