SELECT count(*) FROM approvals WHERE state = 'pending'
