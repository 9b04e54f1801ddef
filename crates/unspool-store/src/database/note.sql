-- What the user wrote about a session, a turn or a part. By ids and not by rows, and without a
-- reference to the session: a note outlives its session while that is read again.
CREATE TABLE note (
    session TEXT NOT NULL,
    kind    TEXT NOT NULL CHECK (kind IN ('session', 'turn', 'part')),
    -- The id of the turn or part; empty for the session.
    target  TEXT NOT NULL,
    -- The id of the turn that had the part when the note was written: there it is looked for first.
    turn    TEXT NOT NULL,
    -- Empty for a bookmark.
    text    TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (session, kind, target)
) WITHOUT ROWID;
