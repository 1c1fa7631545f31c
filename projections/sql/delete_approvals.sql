DELETE FROM approvals
