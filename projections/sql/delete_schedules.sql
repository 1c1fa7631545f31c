DELETE FROM schedules
