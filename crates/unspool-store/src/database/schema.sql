-- Times are milliseconds since 1970, for comparing; the exact ones are in the payloads.

CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE session (
    row              INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
    agent            TEXT NOT NULL,
    agent_session_id TEXT NOT NULL,
    channel          TEXT NOT NULL DEFAULT 'text',
    project          TEXT,
    branch           TEXT,
    version          TEXT,
    title            TEXT,
    -- The user's name for the session; takes precedence over every title.
    name             TEXT,
    state            TEXT NOT NULL,
    completeness     TEXT NOT NULL,
    parent           TEXT,
    parent_call      TEXT,
    forked_from      TEXT,
    forked_turn      TEXT,
    sub_agent        INTEGER NOT NULL DEFAULT 0,
    cost_usd         REAL,
    -- The start time that the agent reported.
    begun            INTEGER,
    -- The first line of the first prompt: its title while it has no other.
    prompt           TEXT,
    -- Sums over the session's turns.
    started          INTEGER,
    ended            INTEGER,
    turns            INTEGER NOT NULL DEFAULT 0,
    parts            INTEGER NOT NULL DEFAULT 0,
    tools            INTEGER NOT NULL DEFAULT 0,
    errors           INTEGER NOT NULL DEFAULT 0,
    input            INTEGER NOT NULL DEFAULT 0,
    output           INTEGER NOT NULL DEFAULT 0,
    cache_read       INTEGER NOT NULL DEFAULT 0,
    cache_write      INTEGER NOT NULL DEFAULT 0,
    reasoning        INTEGER NOT NULL DEFAULT 0,
    models           TEXT NOT NULL DEFAULT '[]',
    -- The number of events applied.
    seq              INTEGER NOT NULL DEFAULT 0,
    oddities         TEXT NOT NULL DEFAULT '{}',
    head             TEXT NOT NULL
);
CREATE INDEX session_started ON session (started DESC, id);
CREATE INDEX session_agent_session_id ON session (agent_session_id);
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;

CREATE TABLE tag (
    session INTEGER NOT NULL REFERENCES session (row) ON DELETE CASCADE,
    name    TEXT NOT NULL,
    PRIMARY KEY (session, name)
) WITHOUT ROWID;

CREATE TABLE turn (
    row           INTEGER PRIMARY KEY,
    session       INTEGER NOT NULL REFERENCES session (row) ON DELETE CASCADE,
    id            TEXT NOT NULL,
    number        INTEGER NOT NULL,
    trigger       TEXT NOT NULL,
    thinking_mode INTEGER NOT NULL,
    state         TEXT NOT NULL,
    abandoned     INTEGER NOT NULL,
    -- Copied from the session that this one branched off.
    inherited     INTEGER NOT NULL,
    started       INTEGER,
    ended         INTEGER,
    -- Nothing in it is open.
    settled       INTEGER NOT NULL,
    -- Sums over the turn's parts and steps; hidden parts do not count.
    first         INTEGER,
    last          INTEGER,
    parts         INTEGER NOT NULL DEFAULT 0,
    tools         INTEGER NOT NULL DEFAULT 0,
    errors        INTEGER NOT NULL DEFAULT 0,
    input         INTEGER NOT NULL DEFAULT 0,
    output        INTEGER NOT NULL DEFAULT 0,
    cache_read    INTEGER NOT NULL DEFAULT 0,
    cache_write   INTEGER NOT NULL DEFAULT 0,
    reasoning     INTEGER NOT NULL DEFAULT 0,
    head          TEXT NOT NULL,
    -- Digests of the names of the turn, its steps and parts, eight bytes each.
    names         BLOB NOT NULL
);
CREATE INDEX turn_session ON turn (session, number);
CREATE INDEX turn_id ON turn (id);
CREATE INDEX turn_with_tools ON turn (session, number) WHERE tools > 0;

CREATE TABLE step (
    turn        INTEGER NOT NULL REFERENCES turn (row) ON DELETE CASCADE,
    number      INTEGER NOT NULL,
    id          TEXT NOT NULL,
    model       TEXT,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    stop_reason TEXT,
    -- JSON: its name, its positions in the feeds, and the provenance of its prompt.
    origin      TEXT NOT NULL,
    PRIMARY KEY (turn, number)
) WITHOUT ROWID;

-- Many payloads, compressed as one.
CREATE TABLE chunk (
    row     INTEGER PRIMARY KEY,
    -- The owner of the payloads; NULL if sessions may share them.
    session INTEGER REFERENCES session (row) ON DELETE CASCADE,
    data    BLOB NOT NULL
);
CREATE INDEX chunk_session ON chunk (session) WHERE session IS NOT NULL;

-- Large payloads, each stored once.
CREATE TABLE content (
    row    INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    chunk  INTEGER NOT NULL REFERENCES chunk (row),
    at     INTEGER NOT NULL,
    size   INTEGER NOT NULL
);
CREATE INDEX content_chunk ON content (chunk);

CREATE TABLE part (
    row      INTEGER PRIMARY KEY,
    turn     INTEGER NOT NULL REFERENCES turn (row) ON DELETE CASCADE,
    -- Negative for the user's message.
    place    INTEGER NOT NULL,
    id       TEXT NOT NULL,
    role     TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    kind     TEXT NOT NULL,
    state    TEXT,
    tool     TEXT,
    call_id  TEXT,
    step     TEXT,
    started  INTEGER,
    ended    INTEGER,
    duration INTEGER,
    -- Stored but not shown.
    hidden   INTEGER NOT NULL DEFAULT 0,
    -- The first source record of the part.
    source   INTEGER,
    offset   INTEGER,
    length   INTEGER,
    text     TEXT,
    chunk    INTEGER REFERENCES chunk (row),
    at       INTEGER,
    size     INTEGER,
    content  INTEGER REFERENCES content (row)
);
CREATE INDEX part_turn ON part (turn, place);
CREATE INDEX part_call ON part (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX part_tool ON part (tool, state) WHERE tool IS NOT NULL;
CREATE INDEX part_content ON part (content) WHERE content IS NOT NULL;
CREATE INDEX part_chunk ON part (chunk) WHERE chunk IS NOT NULL;

-- Payloads of open turns, one row each, because they will change soon.
CREATE TABLE journal (
    part    INTEGER PRIMARY KEY REFERENCES part (row) ON DELETE CASCADE,
    payload BLOB NOT NULL
);

-- The sub-agents of agent parts, and their sessions.
CREATE TABLE agent (
    part     INTEGER NOT NULL REFERENCES part (row) ON DELETE CASCADE,
    agent_id TEXT NOT NULL,
    call_id  TEXT NOT NULL,
    -- The parent session by row; the sub-agent's session by id, because it may be recorded later.
    parent   INTEGER NOT NULL REFERENCES session (row) ON DELETE CASCADE,
    session  TEXT NOT NULL,
    PRIMARY KEY (part, agent_id)
) WITHOUT ROWID;
CREATE INDEX agent_parent ON agent (parent);
CREATE INDEX agent_session ON agent (session);

CREATE TABLE snapshot (
    sha256  TEXT PRIMARY KEY,
    kind    TEXT NOT NULL,
    content BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE session_snapshot (
    session INTEGER NOT NULL REFERENCES session (row) ON DELETE CASCADE,
    sha256  TEXT NOT NULL REFERENCES snapshot (sha256),
    PRIMARY KEY (session, sha256)
) WITHOUT ROWID;

-- Files that were read, and how far.
CREATE TABLE file (
    row      INTEGER PRIMARY KEY,
    path     TEXT NOT NULL UNIQUE,
    size     INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    changed  INTEGER NOT NULL,
    inode    INTEGER NOT NULL,
    device   INTEGER NOT NULL,
    offset   INTEGER NOT NULL,
    line     INTEGER NOT NULL,
    head     INTEGER NOT NULL,
    tail     INTEGER NOT NULL,
    saved    BLOB,
    refused  TEXT
);

-- The files of each session, with the counts of their records by outcome.
CREATE TABLE source (
    session    INTEGER NOT NULL REFERENCES session (row) ON DELETE CASCADE,
    file       INTEGER NOT NULL REFERENCES file (row) ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    telling    TEXT NOT NULL,
    first      INTEGER NOT NULL,
    read       INTEGER NOT NULL,
    in_parts   INTEGER NOT NULL,
    metadata   INTEGER NOT NULL,
    unreadable INTEGER NOT NULL,
    left_out   TEXT NOT NULL,
    PRIMARY KEY (session, file, number)
) WITHOUT ROWID;
CREATE INDEX source_file ON source (file);

-- The last event applied from each source. Commits together with the parts made from it.
CREATE TABLE cursor (
    session INTEGER NOT NULL REFERENCES session (row) ON DELETE CASCADE,
    telling TEXT NOT NULL,
    source  INTEGER NOT NULL,
    offset  INTEGER NOT NULL,
    nth     INTEGER NOT NULL,
    PRIMARY KEY (session, telling, source)
) WITHOUT ROWID;

CREATE TABLE warning (
    row     INTEGER PRIMARY KEY,
    file    INTEGER NOT NULL REFERENCES file (row) ON DELETE CASCADE,
    session INTEGER REFERENCES session (row) ON DELETE CASCADE,
    line    INTEGER NOT NULL,
    what    TEXT NOT NULL,
    bytes   BLOB NOT NULL,
    UNIQUE (file, line, what)
);
CREATE INDEX warning_session ON warning (session) WHERE session IS NOT NULL;

-- Sessions that the user deleted. Syncing does not restore them.
CREATE TABLE deleted (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;

-- Names and tags of sessions that are being re-read. A trigger applies them when the session is
-- stored again.
CREATE TABLE remembered (
    id   TEXT PRIMARY KEY,
    name TEXT,
    tags TEXT NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER session_remembered AFTER INSERT ON session
WHEN EXISTS (SELECT 1 FROM remembered WHERE id = NEW.id)
BEGIN
    UPDATE session SET name = (SELECT name FROM remembered WHERE id = NEW.id) WHERE row = NEW.row;
    INSERT INTO tag (session, name)
        SELECT NEW.row, value FROM remembered, json_each(remembered.tags) WHERE remembered.id = NEW.id;
    DELETE FROM remembered WHERE id = NEW.id;
END;

-- The full-text index: immutable segments, in blocks of words with their postings.
CREATE TABLE segment (
    row       INTEGER PRIMARY KEY,
    documents INTEGER NOT NULL,
    words     INTEGER NOT NULL,
    tokens    INTEGER NOT NULL
);
CREATE TABLE word_block (
    segment  INTEGER NOT NULL REFERENCES segment (row) ON DELETE CASCADE,
    number   INTEGER NOT NULL,
    first    BLOB NOT NULL,
    last     BLOB NOT NULL,
    words    BLOB NOT NULL,
    postings BLOB NOT NULL,
    UNIQUE (segment, number)
);
CREATE INDEX word_block_first ON word_block (segment, first);
-- N-gram bitmaps: which 4-byte sequences occur in the words of which blocks, in slices that fit a
-- page.
CREATE TABLE word_runs (
    segment INTEGER NOT NULL REFERENCES segment (row) ON DELETE CASCADE,
    sheet   INTEGER NOT NULL,
    slice   INTEGER NOT NULL,
    bits    BLOB NOT NULL,
    PRIMARY KEY (segment, sheet, slice)
) WITHOUT ROWID;
-- Parts that are not in a segment yet.
CREATE TABLE unindexed (
    part INTEGER PRIMARY KEY REFERENCES part (row) ON DELETE CASCADE
);

-- Messages in the sense of other tools, derived from the parts on each query. Uses no SQL newer
-- than SQLite 3.38, because users open this file with the SQLite of their system.
CREATE VIEW message AS
SELECT
    turn.id || ':' || role.name AS id,
    session.id AS agent_id,
    turn.id AS execution_id,
    role.name AS role,
    turn.number * 2 + role.nth AS sequence,
    (SELECT json_group_array(json(object)) FROM
        (SELECT json_object('id', part.id, 'kind', part.kind, 'state', part.state,
            'tool', part.tool, 'call_id', part.call_id, 'text', part.text) AS object
         FROM part WHERE part.turn = turn.row AND part.role = role.name AND NOT part.hidden
         ORDER BY part.place)) AS parts,
    json_object('trigger', turn.trigger, 'state', turn.state,
        'abandoned', json(iif(turn.abandoned, 'true', 'false'))) AS metadata,
    iif(role.nth = 0, turn.started, coalesce(turn.first, turn.started)) AS created_at,
    EXISTS (SELECT 1 FROM part WHERE part.turn = turn.row AND part.role = role.name
            AND NOT part.hidden AND part.kind = 'tool') AS has_tool_calls,
    EXISTS (SELECT 1 FROM part WHERE part.turn = turn.row AND part.role = role.name
            AND NOT part.hidden AND part.kind = 'reasoning') AS has_reasoning,
    EXISTS (SELECT 1 FROM part WHERE part.turn = turn.row AND part.role = role.name
            AND NOT part.hidden AND part.kind = 'file') AS has_files,
    substr(coalesce((SELECT group_concat(text, '') FROM
        (SELECT part.text FROM part WHERE part.turn = turn.row AND part.role = role.name
            AND NOT part.hidden AND part.kind = 'text' ORDER BY part.place)), ''), 1, 200)
        AS text_preview,
    coalesce((SELECT group_concat(text, '') FROM
        (SELECT part.text FROM part WHERE part.turn = turn.row AND part.role = role.name
            AND NOT part.hidden AND part.kind = 'text' ORDER BY part.place)), '') AS content
FROM turn
JOIN session ON session.row = turn.session
JOIN (SELECT 'user' AS name, 0 AS nth UNION ALL SELECT 'assistant', 1) AS role
WHERE role.nth = 1 OR EXISTS (SELECT 1 FROM part WHERE part.turn = turn.row AND part.role = 'user');

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
