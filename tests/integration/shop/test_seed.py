"""The shop's data are the same for everybody, and nobody's own shop is touched."""

import psycopg
import pytest

from agent.tools.shop.seed import NotOurShop, create_shop, fail_three_overnight
from tests.databases import Database
from tests.integration.shop.conftest import Shop


async def test_the_numbers_of_the_story(shop: Shop) -> None:
    assert shop.rows("SELECT status, count(*) AS n FROM shop.payments GROUP BY 1 ORDER BY 1") == [
        {"status": "failed", "n": 38},
        {"status": "paid", "n": 357},
        {"status": "refunded", "n": 5},
    ]
    [worth] = shop.rows("SELECT sum(amount)::text AS eur FROM shop.payments WHERE status = 'failed'")
    assert worth == {"eur": "4120.00"}


async def test_customers_are_1204_different_people_with_invented_addresses(shop: Shop) -> None:
    [row] = shop.rows(
        """SELECT count(DISTINCT name) AS names, count(DISTINCT email) AS emails,
                  bool_and(email ~ '^[a-z]+[.][a-z]+@example[.]com$') AS invented,
                  bool_and(opened_on < current_date - 29 AND first_purchase_on >= opened_on) AS aged
             FROM shop.customers"""
    )
    assert row == {"names": 1204, "emails": 1204, "invented": True, "aged": True}


async def test_making_the_shop_again_gives_the_same_shop(shop: Shop) -> None:
    before = shop.rows("SELECT id, amount, status FROM shop.payments ORDER BY id")
    await fail_three_overnight(shop.url)
    shop.run("DELETE FROM shop.customers")
    await create_shop(shop.url)
    assert shop.rows("SELECT id, amount, status FROM shop.payments ORDER BY id") == before
    assert shop.rows("SELECT count(*) AS n FROM shop.customers") == [{"n": 1204}]


async def test_the_night_falls_once(shop: Shop) -> None:
    for _ in range(2):
        assert await fail_three_overnight(shop.url) == ["pay_0401", "pay_0402", "pay_0403"]
    assert len(shop.failed_ids()) == 41


async def test_a_schema_shop_that_is_not_the_example_is_left_alone(empty_database: Database) -> None:
    with psycopg.connect(empty_database.owner_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shop CREATE TABLE customers (id int)")
        with pytest.raises(NotOurShop, match="use another database"):
            await create_shop(empty_database.owner_url)
        assert connection.execute("SELECT count(*) FROM shop.customers").fetchall() == [(0,)]
