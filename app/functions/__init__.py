"""What the authors of workflows write in code: functions that nodes call, and workflows of them."""
