"""What is logged of decisions: values of the log lines and of the decision log."""
