"""What is offered to a loader: one module for each source."""
