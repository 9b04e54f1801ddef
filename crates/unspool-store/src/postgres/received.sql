-- Files of other machines, whose text those machines send.
CREATE TABLE received (
    file       BIGINT PRIMARY KEY REFERENCES file ON DELETE CASCADE
        DEFERRABLE INITIALLY DEFERRED,
    -- How often the sender has replaced the file.
    generation BIGINT NOT NULL,
    -- How much of the sender's file was taken, in bytes there, and its fingerprint there: what
    -- arrives is redacted and has another length.
    taken      BIGINT NOT NULL,
    head       BIGINT NOT NULL,
    tail       BIGINT NOT NULL,
    -- 1 if the sender said that nobody writes the file any more.
    idle       BIGINT NOT NULL
);

-- The text as it arrived, in compressed pieces.
CREATE TABLE received_text (
    file   BIGINT NOT NULL REFERENCES received ON DELETE CASCADE
        DEFERRABLE INITIALLY DEFERRED,
    start  BIGINT NOT NULL,
    length BIGINT NOT NULL,
    data   BYTEA NOT NULL,
    PRIMARY KEY (file, start)
);
-- Compressed already.
ALTER TABLE received_text ALTER COLUMN data SET STORAGE EXTERNAL;
