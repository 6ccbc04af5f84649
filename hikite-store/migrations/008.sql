-- Which nodes are there is asked every second by each of them, and which sessions a node holds every ten minutes, among the
-- leases of every session that ever moved. A pattern on the name uses no index, so that those parts have one of their own.
CREATE INDEX lease_node ON lease (fence, until) WHERE substr(name, 1, 5) = 'node:';
CREATE INDEX lease_session_holder ON lease (holder) WHERE substr(name, 1, 8) = 'session:';
CREATE INDEX lease_session_until ON lease (until) WHERE substr(name, 1, 8) = 'session:';
