"""What a loader is given and what it promises: the job, the decorator, and how a loader is found and called."""
