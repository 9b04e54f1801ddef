-- What model calls were sent: lines of JSON, compressed, one row per batch. They are read as a whole:
-- each prompt is the difference to an earlier one.
CREATE TABLE prompt_log (
    row     INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (row) ON DELETE CASCADE,
    data    BLOB NOT NULL
);
CREATE INDEX prompt_log_session ON prompt_log (session);
