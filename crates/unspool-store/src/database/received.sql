-- Files of other machines, whose text those machines send.
CREATE TABLE received (
    file       INTEGER PRIMARY KEY REFERENCES file (row) ON DELETE CASCADE,
    -- How often the sender has replaced the file.
    generation INTEGER NOT NULL,
    -- How much of the sender's file was taken, in bytes there, and its fingerprint there: what
    -- arrives is redacted and has another length.
    taken      INTEGER NOT NULL,
    head       INTEGER NOT NULL,
    tail       INTEGER NOT NULL,
    -- 1 if the sender said that nobody writes the file any more.
    idle       INTEGER NOT NULL
);

-- The text as it arrived, in compressed pieces.
CREATE TABLE received_text (
    file   INTEGER NOT NULL REFERENCES received (file) ON DELETE CASCADE,
    start  INTEGER NOT NULL,
    length INTEGER NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (file, start)
);
