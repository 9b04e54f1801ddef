-- The files that calls changed, so that the edits of a file are found without reading sessions.
CREATE TABLE edited_file (
    part INTEGER NOT NULL REFERENCES part (row) ON DELETE CASCADE,
    -- As the log has it.
    path TEXT NOT NULL,
    -- Its last component.
    name TEXT NOT NULL,
    PRIMARY KEY (part, path)
) WITHOUT ROWID;
CREATE INDEX edited_file_name ON edited_file (name);
-- Payloads are compressed, so SQL cannot fill the table: parts up to this row are not in it until
-- the archive is rebuilt. Whoever asks for edits reads those calls.
INSERT INTO setting (name, value)
SELECT 'edited_files_after', max(row) FROM part WHERE tool IS NOT NULL OR kind = 'patch'
HAVING max(row) IS NOT NULL;
