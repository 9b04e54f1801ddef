-- The archive in PostgreSQL: the tables of the SQLite archive, with the same columns.
--
-- Every text has the collation "C", so that lists have the same order as in SQLite, whatever the
-- language of the server. Times are milliseconds since 1970, for comparing; the exact ones are in
-- the payloads.

-- Functions of SQLite that the queries use.
CREATE FUNCTION instr(text, text) RETURNS INTEGER LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS 'SELECT strpos($1, $2)';
CREATE FUNCTION iif(boolean, anycompatible, anycompatible) RETURNS anycompatible
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT CASE WHEN $1 THEN $2 ELSE $3 END';
CREATE FUNCTION min(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE least($1, $2) END';
CREATE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE greatest($1, $2) END';
-- A sum as SQLite casts it: 0 of nothing, and never too large.
CREATE FUNCTION clamped(numeric) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT CASE WHEN $1 IS NULL THEN 0 ELSE greatest(least($1, 9223372036854775807),
        -9223372036854775808)::bigint END';
-- PostgreSQL refuses to read U+0000 in JSON, which is kept in the columns.
CREATE FUNCTION json_each(text) RETURNS TABLE (value TEXT) LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT json_array_elements_text(replace($1, ''\u0000'', ''\ufffd'')::json)';
CREATE FUNCTION row_list(text) RETURNS TABLE (value BIGINT) LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT json_array_elements_text($1::json)::bigint';
-- Of a path with dots only: '$.facts.cost_tokens'.
CREATE FUNCTION json_extract(text, text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT replace($1, ''\u0000'', ''\ufffd'')::json #>> string_to_array(substr($2, 3), ''.'')';
CREATE FUNCTION json_list(text[]) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT coalesce(array_to_json($1)::text, ''[]'')';
CREATE AGGREGATE json_group_array(text) (
    sfunc = array_append, stype = text[], initcond = '{}', finalfunc = json_list);

CREATE TABLE setting (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);

CREATE TABLE session (
    row              BIGINT PRIMARY KEY,
    id               TEXT COLLATE "C" NOT NULL UNIQUE,
    agent            TEXT COLLATE "C" NOT NULL,
    agent_session_id TEXT COLLATE "C" NOT NULL,
    channel          TEXT COLLATE "C" NOT NULL DEFAULT 'text',
    project          TEXT COLLATE "C",
    branch           TEXT COLLATE "C",
    version          TEXT COLLATE "C",
    title            TEXT COLLATE "C",
    -- The user's name for the session; takes precedence over every title.
    name             TEXT COLLATE "C",
    state            TEXT COLLATE "C" NOT NULL,
    completeness     TEXT COLLATE "C" NOT NULL,
    parent           TEXT COLLATE "C",
    parent_call      TEXT COLLATE "C",
    forked_from      TEXT COLLATE "C",
    forked_turn      TEXT COLLATE "C",
    sub_agent        BOOLEAN NOT NULL DEFAULT false,
    cost_usd         DOUBLE PRECISION,
    -- The start time that the agent reported.
    begun            BIGINT,
    -- The first line of the first prompt: its title while it has no other.
    prompt           TEXT COLLATE "C",
    -- Sums over the session's turns.
    started          BIGINT,
    ended            BIGINT,
    turns            BIGINT NOT NULL DEFAULT 0,
    parts            BIGINT NOT NULL DEFAULT 0,
    tools            BIGINT NOT NULL DEFAULT 0,
    errors           BIGINT NOT NULL DEFAULT 0,
    input            BIGINT NOT NULL DEFAULT 0,
    output           BIGINT NOT NULL DEFAULT 0,
    cache_read       BIGINT NOT NULL DEFAULT 0,
    cache_write      BIGINT NOT NULL DEFAULT 0,
    -- Tokens written to caches with a lifetime of one hour. Included in cache_write.
    cache_write_1h   BIGINT NOT NULL DEFAULT 0,
    reasoning        BIGINT NOT NULL DEFAULT 0,
    models           TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    -- The number of events applied.
    seq              BIGINT NOT NULL DEFAULT 0,
    oddities         TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    head             TEXT COLLATE "C" NOT NULL
);
CREATE INDEX session_started ON session (started DESC NULLS LAST, id);
CREATE INDEX session_last_heard ON session (coalesce(ended, started));
-- A name from a log may be longer than what a B-tree takes; a hash index has no such limit.
CREATE INDEX session_agent_session_id ON session USING hash (agent_session_id);
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;

CREATE TABLE tag (
    session BIGINT NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (session, name)
);

CREATE TABLE turn (
    row           BIGINT PRIMARY KEY,
    session       BIGINT NOT NULL,
    id            TEXT COLLATE "C" NOT NULL,
    number        BIGINT NOT NULL,
    trigger       TEXT COLLATE "C" NOT NULL,
    thinking_mode BOOLEAN NOT NULL,
    state         TEXT COLLATE "C" NOT NULL,
    abandoned     BOOLEAN NOT NULL,
    -- Copied from the session that this one branched off.
    inherited     BOOLEAN NOT NULL,
    started       BIGINT,
    ended         BIGINT,
    -- Nothing in it is open.
    settled       BOOLEAN NOT NULL,
    -- Sums over the turn's parts and steps; hidden parts do not count.
    first         BIGINT,
    last          BIGINT,
    parts         BIGINT NOT NULL DEFAULT 0,
    tools         BIGINT NOT NULL DEFAULT 0,
    errors        BIGINT NOT NULL DEFAULT 0,
    input         BIGINT NOT NULL DEFAULT 0,
    output        BIGINT NOT NULL DEFAULT 0,
    cache_read    BIGINT NOT NULL DEFAULT 0,
    cache_write   BIGINT NOT NULL DEFAULT 0,
    cache_write_1h BIGINT NOT NULL DEFAULT 0,
    reasoning     BIGINT NOT NULL DEFAULT 0,
    head          TEXT COLLATE "C" NOT NULL,
    -- Digests of the names of the turn, its steps and parts, eight bytes each.
    names         BYTEA NOT NULL
);
-- Checked at the end of a transaction: turns may change numbers with each other in it.
ALTER TABLE turn ADD CONSTRAINT turn_session UNIQUE (session, number) DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX turn_id ON turn (id);
CREATE INDEX turn_running ON turn (session) WHERE state = 'running';

CREATE TABLE step (
    turn        BIGINT NOT NULL,
    number      BIGINT NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    model       TEXT COLLATE "C",
    input       BIGINT NOT NULL,
    output      BIGINT NOT NULL,
    cache_read  BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    cache_write_1h BIGINT NOT NULL DEFAULT 0,
    reasoning   BIGINT NOT NULL,
    stop_reason TEXT COLLATE "C",
    -- JSON: its name, its positions in the feeds, and the provenance of its prompt.
    origin      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (turn, number)
);

-- Many payloads, compressed as one.
CREATE TABLE chunk (
    row     BIGINT PRIMARY KEY,
    -- The owner of the payloads; NULL if sessions may share them.
    session BIGINT,
    data    BYTEA NOT NULL
);
CREATE INDEX chunk_session ON chunk (session) WHERE session IS NOT NULL;

-- Large payloads, each stored once.
CREATE TABLE content (
    row    BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    digest BYTEA NOT NULL UNIQUE,
    chunk  BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    size   BIGINT NOT NULL
);
CREATE INDEX content_chunk ON content (chunk);

CREATE TABLE part (
    row      BIGINT PRIMARY KEY,
    turn     BIGINT NOT NULL,
    -- Negative for the user's message.
    place    BIGINT NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    role     TEXT COLLATE "C" NOT NULL CHECK (role IN ('user', 'assistant')),
    kind     TEXT COLLATE "C" NOT NULL,
    state    TEXT COLLATE "C",
    tool     TEXT COLLATE "C",
    call_id  TEXT COLLATE "C",
    step     TEXT COLLATE "C",
    started  BIGINT,
    ended    BIGINT,
    duration BIGINT,
    -- Stored but not shown.
    hidden   BOOLEAN NOT NULL DEFAULT false,
    -- The first source record of the part.
    source   BIGINT,
    "offset"   BIGINT,
    length   BIGINT,
    text     TEXT COLLATE "C",
    chunk    BIGINT,
    at       BIGINT,
    size     BIGINT,
    content  BIGINT,
    -- Tool calls that the part stands for: a source that counts calls and does not list them.
    counted_calls BIGINT
);
ALTER TABLE part ADD CONSTRAINT part_turn UNIQUE (turn, place) DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX part_call ON part USING hash (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX part_failed ON part (state) WHERE tool IS NOT NULL AND state <> 'completed';
CREATE INDEX part_kind ON part (kind) WHERE kind IN ('compaction', 'agent', 'patch');
CREATE INDEX part_user ON part (turn) WHERE role = 'user';
CREATE INDEX part_content ON part (content) WHERE content IS NOT NULL;
CREATE INDEX part_chunk ON part (chunk) WHERE chunk IS NOT NULL;

-- Payloads of open turns, one row each, because they will change soon.
CREATE TABLE journal (
    part    BIGINT PRIMARY KEY,
    payload BYTEA NOT NULL
);

-- The sub-agents of agent parts, and their sessions.
CREATE TABLE agent (
    part     BIGINT NOT NULL,
    agent_id TEXT COLLATE "C" NOT NULL,
    call_id  TEXT COLLATE "C" NOT NULL,
    -- The parent session by row; the sub-agent's session by id, because it may be recorded later.
    parent   BIGINT NOT NULL,
    session  TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX agent_part ON agent (part, md5(agent_id));
CREATE INDEX agent_parent ON agent (parent);
CREATE INDEX agent_session ON agent (session);

CREATE TABLE snapshot (
    sha256  TEXT COLLATE "C" PRIMARY KEY,
    kind    TEXT COLLATE "C" NOT NULL,
    content BYTEA NOT NULL
);

CREATE TABLE session_snapshot (
    session BIGINT NOT NULL,
    sha256  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (session, sha256)
);

-- Files that were read, and how far.
CREATE TABLE file (
    row      BIGINT PRIMARY KEY,
    path     TEXT COLLATE "C" NOT NULL UNIQUE,
    size     BIGINT NOT NULL,
    modified BIGINT NOT NULL,
    changed  BIGINT NOT NULL,
    inode    BIGINT NOT NULL,
    device   BIGINT NOT NULL,
    "offset"   BIGINT NOT NULL,
    line     BIGINT NOT NULL,
    head     BIGINT NOT NULL,
    tail     BIGINT NOT NULL,
    saved    BYTEA,
    refused  TEXT COLLATE "C"
);

-- The files of each session, with the counts of their records by outcome.
CREATE TABLE source (
    session    BIGINT NOT NULL,
    file       BIGINT NOT NULL,
    number     BIGINT NOT NULL,
    telling    TEXT COLLATE "C" NOT NULL,
    first      BIGINT NOT NULL,
    read       BIGINT NOT NULL,
    in_parts   BIGINT NOT NULL,
    metadata   BIGINT NOT NULL,
    unreadable BIGINT NOT NULL,
    left_out   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (session, file, number)
);
CREATE INDEX source_file ON source (file);

-- The last event applied from each source. Commits together with the parts made from it.
CREATE TABLE cursor (
    session BIGINT NOT NULL,
    telling TEXT COLLATE "C" NOT NULL,
    source  BIGINT NOT NULL,
    "offset"  BIGINT NOT NULL,
    nth     BIGINT NOT NULL,
    PRIMARY KEY (session, telling, source)
);

CREATE TABLE warning (
    row     BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    file    BIGINT NOT NULL,
    session BIGINT,
    line    BIGINT NOT NULL,
    what    TEXT COLLATE "C" NOT NULL,
    bytes   BYTEA NOT NULL
);
CREATE UNIQUE INDEX warning_line ON warning (file, line, md5(what));
CREATE INDEX warning_session ON warning (session) WHERE session IS NOT NULL;

-- Sessions that the user deleted. Syncing does not restore them.
CREATE TABLE deleted (
    id TEXT COLLATE "C" PRIMARY KEY,
    at BIGINT NOT NULL
);

-- Names and tags of sessions that are being re-read. A trigger applies them when the session is
-- stored again.
CREATE TABLE remembered (
    id   TEXT COLLATE "C" PRIMARY KEY,
    name TEXT COLLATE "C",
    tags TEXT COLLATE "C" NOT NULL
);
CREATE FUNCTION apply_remembered() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE session SET name = remembered.name FROM remembered
        WHERE remembered.id = NEW.id AND session.row = NEW.row;
    INSERT INTO tag (session, name)
        SELECT NEW.row, tags.value FROM remembered, json_each(remembered.tags) AS tags
        WHERE remembered.id = NEW.id;
    DELETE FROM remembered WHERE id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER session_remembered AFTER INSERT ON session
    FOR EACH ROW EXECUTE FUNCTION apply_remembered();

-- The full-text index: immutable segments, in blocks of words with their postings.
CREATE TABLE segment (
    row       BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    documents BIGINT NOT NULL,
    words     BIGINT NOT NULL,
    tokens    BIGINT NOT NULL
);
CREATE TABLE word_block (
    segment  BIGINT NOT NULL,
    number   BIGINT NOT NULL,
    first    BYTEA NOT NULL,
    last     BYTEA NOT NULL,
    words    BYTEA NOT NULL,
    postings BYTEA NOT NULL,
    UNIQUE (segment, number)
);
CREATE INDEX word_block_first ON word_block (segment, first);
-- N-gram bitmaps: which 4-byte sequences occur in the words of which blocks, in slices that fit a
-- page.
CREATE TABLE word_runs (
    segment BIGINT NOT NULL,
    sheet   BIGINT NOT NULL,
    slice   BIGINT NOT NULL,
    bits    BYTEA NOT NULL,
    PRIMARY KEY (segment, sheet, slice)
);
-- Parts that are not in a segment yet.
CREATE TABLE unindexed (
    part BIGINT PRIMARY KEY
);


-- The files that calls changed.
CREATE TABLE edited_file (
    part BIGINT NOT NULL,
    -- As the log has it.
    path TEXT COLLATE "C" NOT NULL,
    -- Its last component.
    name TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX edited_file_part ON edited_file (part, md5(path));
CREATE INDEX edited_file_name ON edited_file USING hash (name);

-- What the user wrote about a session, a turn or a part, by their ids.
CREATE TABLE note (
    session TEXT COLLATE "C" NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL CHECK (kind IN ('session', 'turn', 'part')),
    target  TEXT COLLATE "C" NOT NULL,
    turn    TEXT COLLATE "C" NOT NULL,
    text    TEXT COLLATE "C" NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (session, kind, target)
);

-- What model calls were sent: lines of JSON, compressed, one row per batch.
CREATE TABLE prompt_log (
    row     BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    session BIGINT NOT NULL,
    data    BYTEA NOT NULL
);
CREATE INDEX prompt_log_session ON prompt_log (session);

-- Bytes that are compressed already.
ALTER TABLE chunk ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE prompt_log ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE journal ALTER COLUMN payload SET STORAGE EXTERNAL;
ALTER TABLE snapshot ALTER COLUMN content SET STORAGE EXTERNAL;
ALTER TABLE word_block ALTER COLUMN words SET STORAGE EXTERNAL;
ALTER TABLE word_block ALTER COLUMN postings SET STORAGE EXTERNAL;
ALTER TABLE word_runs ALTER COLUMN bits SET STORAGE EXTERNAL;
-- Its sums change with every batch: room for that on the same page.
ALTER TABLE session SET (fillfactor = 70);
ALTER TABLE turn SET (fillfactor = 80);

-- The owners of rows of which there are few. A foreign key of `part` or `step` would look up the owner
-- of every part that is written: a batch looks for all of its parts at once instead (`write.rs`).
ALTER TABLE turn ADD FOREIGN KEY (session) REFERENCES session DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE chunk ADD FOREIGN KEY (session) REFERENCES session DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE content ADD FOREIGN KEY (chunk) REFERENCES chunk DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE source ADD FOREIGN KEY (session) REFERENCES session DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE source ADD FOREIGN KEY (file) REFERENCES file DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE cursor ADD FOREIGN KEY (session) REFERENCES session DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE warning ADD FOREIGN KEY (session) REFERENCES session DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE warning ADD FOREIGN KEY (file) REFERENCES file DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE tag ADD FOREIGN KEY (session) REFERENCES session DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE prompt_log ADD FOREIGN KEY (session) REFERENCES session DEFERRABLE INITIALLY DEFERRED;

-- Rows go with the row that owns them.
CREATE FUNCTION delete_of_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM turn WHERE session IN (SELECT row FROM gone);
    DELETE FROM tag WHERE session IN (SELECT row FROM gone);
    DELETE FROM chunk WHERE session IN (SELECT row FROM gone);
    DELETE FROM agent WHERE parent IN (SELECT row FROM gone);
    DELETE FROM session_snapshot WHERE session IN (SELECT row FROM gone);
    DELETE FROM source WHERE session IN (SELECT row FROM gone);
    DELETE FROM cursor WHERE session IN (SELECT row FROM gone);
    DELETE FROM warning WHERE session IN (SELECT row FROM gone);
    DELETE FROM prompt_log WHERE session IN (SELECT row FROM gone);
    RETURN NULL;
END $$;
CREATE TRIGGER session_deleted AFTER DELETE ON session REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION delete_of_session();
CREATE FUNCTION delete_of_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM step WHERE turn IN (SELECT row FROM gone);
    DELETE FROM part WHERE turn IN (SELECT row FROM gone);
    RETURN NULL;
END $$;
CREATE TRIGGER turn_deleted AFTER DELETE ON turn REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION delete_of_turn();
CREATE FUNCTION delete_of_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM journal WHERE part IN (SELECT row FROM gone);
    DELETE FROM agent WHERE part IN (SELECT row FROM gone);
    DELETE FROM unindexed WHERE part IN (SELECT row FROM gone);
    DELETE FROM edited_file WHERE part IN (SELECT row FROM gone);
    RETURN NULL;
END $$;
CREATE TRIGGER part_deleted AFTER DELETE ON part REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION delete_of_part();
CREATE FUNCTION delete_of_segment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM word_block WHERE segment IN (SELECT row FROM gone);
    DELETE FROM word_runs WHERE segment IN (SELECT row FROM gone);
    RETURN NULL;
END $$;
CREATE TRIGGER segment_deleted AFTER DELETE ON segment REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION delete_of_segment();

-- Messages in the sense of other tools, derived from the parts on each query.
CREATE VIEW message AS
SELECT
    turn.id || ':' || role.name AS id,
    session.id AS agent_id,
    turn.id AS execution_id,
    role.name COLLATE "C" AS role,
    turn.number * 2 + role.nth AS sequence,
    (SELECT coalesce(json_agg(json_build_object('id', part.id, 'kind', part.kind,
        'state', part.state, 'tool', part.tool, 'call_id', part.call_id, 'text', part.text)
        ORDER BY part.place), '[]')::text
     FROM part WHERE part.turn = turn.row AND part.role = role.name AND NOT part.hidden) AS parts,
    json_build_object('trigger', turn.trigger, 'state', turn.state,
        'abandoned', turn.abandoned)::text AS metadata,
    CASE WHEN role.nth = 0 THEN turn.started ELSE coalesce(turn.first, turn.started) END
        AS created_at,
    EXISTS (SELECT 1 FROM part WHERE part.turn = turn.row AND part.role = role.name
            AND NOT part.hidden AND part.kind = 'tool') AS has_tool_calls,
    EXISTS (SELECT 1 FROM part WHERE part.turn = turn.row AND part.role = role.name
            AND NOT part.hidden AND part.kind = 'reasoning') AS has_reasoning,
    EXISTS (SELECT 1 FROM part WHERE part.turn = turn.row AND part.role = role.name
            AND NOT part.hidden AND part.kind = 'file') AS has_files,
    substr(said.text, 1, 200) AS text_preview,
    said.text AS content
FROM turn
JOIN session ON session.row = turn.session
JOIN (SELECT 'user' AS name, 0 AS nth UNION ALL SELECT 'assistant', 1) AS role ON true
CROSS JOIN LATERAL (SELECT coalesce(string_agg(part.text, '' ORDER BY part.place), '') AS text
    FROM part WHERE part.turn = turn.row AND part.role = role.name AND NOT part.hidden
        AND part.kind = 'text') AS said
WHERE role.nth = 1
    OR EXISTS (SELECT 1 FROM part WHERE part.turn = turn.row AND part.role = 'user');

-- A session as a plain record: prompt, result, log path and counts (R-001-12).
CREATE VIEW run AS
SELECT
    session.id AS id,
    session.agent AS agent,
    (SELECT content FROM message WHERE message.agent_id = session.id AND message.role = 'user'
     ORDER BY message.sequence LIMIT 1) AS prompt,
    (SELECT content FROM message WHERE message.agent_id = session.id
         AND message.role = 'assistant' AND message.content <> ''
     ORDER BY message.sequence DESC LIMIT 1) AS result,
    (SELECT file.path FROM source JOIN file ON file.row = source.file
     WHERE source.session = session.row ORDER BY source.telling = 'log' DESC, source.number LIMIT 1)
        AS log_path,
    session.input + session.output + session.cache_read + session.cache_write AS tokens,
    session.tools AS tool_calls_count
FROM session;
