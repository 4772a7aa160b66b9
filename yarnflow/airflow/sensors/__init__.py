"""Tasks that wait until a job is in a state, has a recent checkpoint, or has caught up."""
