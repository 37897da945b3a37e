"""An open store for each test."""

from collections.abc import AsyncIterator

import pytest

from store.engine import Database
from tests import databases


@pytest.fixture
async def db(database: databases.Database) -> AsyncIterator[Database]:
    """The store of the test's database, as the app opens it, with connections for twenty at once."""
    opened = Database.open(database.url, pool_size=20)
    yield opened
    await opened.close()
