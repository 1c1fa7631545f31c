-- ops/migrations/0007_expand_afterwards.sql
-- What is found out or decided about a run after its end: which run continues it, why none does, what became of a
-- call whose outcome was unknown. And which run a replay repeats.

ALTER TABLE runs
    ADD COLUMN continued_by_run_id  uuid,
    -- Null: continued, or never interrupted, or not judged yet.
    ADD COLUMN continuation_blocked text,
    ADD COLUMN replay_of_run_id     uuid;

-- An outcome that somebody said, not one that the call's run recorded.
ALTER TABLE tool_calls
    ADD COLUMN resolved boolean NOT NULL DEFAULT false;
