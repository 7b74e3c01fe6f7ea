"""Reader of Kubernetes nodes whose labels name the switches above them."""
