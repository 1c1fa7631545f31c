"""Work that waits: the queue and its workers, schedules, batches, and triggers."""
