-- What search remembers.

-- Vectors of texts by the hash of the text, for each model that made them.
CREATE TABLE search_vector (
    model TEXT NOT NULL,
    content TEXT NOT NULL,
    vector TEXT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (model, content)
);

-- Questions that led to a call that went well. `query` is a hash of the question; its words are kept as hashes in
-- `terms`, and in clear in `text` only where that was allowed. `weight` counts thousandths.
CREATE TABLE search_memory (
    project TEXT NOT NULL,
    query TEXT NOT NULL,
    module TEXT NOT NULL,
    tool TEXT NOT NULL,
    text TEXT NOT NULL,
    terms TEXT NOT NULL,
    model TEXT NOT NULL,
    vector TEXT NOT NULL,
    weight BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (project, query, module, tool)
);
