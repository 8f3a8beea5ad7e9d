"""What is offered to a loader: one module a source."""
