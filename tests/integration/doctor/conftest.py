"""The healthy house."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.databases import Database
from tests.integration.doctor.house import House, healthy


@pytest.fixture
async def house(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    async with healthy(database, tmp_path, monkeypatch) as made:
        yield made
