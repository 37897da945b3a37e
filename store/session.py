"""What every connection is told first, whatever its role, its database or the environment has set."""

ENCODING = "UTF8"
"""Of what is said to libpq, and of what the database keeps."""

PLACE = "SET search_path = public"
"""All tables are there: by itself a user gets a schema of the same name, if there is one."""

# Dates: psycopg reads no other style. Zone: a day has 24 hours. Isolation: who waited for a row must see what
# became of it. Plans: each connection keeps those of its statements, and one made while the tables were small
# would read them whole, to search or to hash them, until somebody analyses them; there is an index for
# everything that is not read whole anyway. Compiling pays for none of our statements.
SESSION = f"""{PLACE}; SET datestyle = 'ISO'; SET timezone = 'UTC';
SET default_transaction_isolation = 'read committed';
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off"""

# A firewall that restarts, or forgets who was silent for long, swallows what comes next and says nothing.
# Seconds, and milliseconds for the last, which only Linux heeds; libpq leaves a socket in a folder alone.
NETWORK = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
