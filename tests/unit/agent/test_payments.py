"""What the shop knows of its provider before it asks it for anything: the account, the keys, the amounts."""

import pytest

from agent.tool import Money, ToolError
from agent.tools.shop.minor_units import minor_units
from agent.tools.shop.payment_client import StripeAccount, honours_keys, stripe_account


@pytest.mark.parametrize(
    ("amount", "currency", "units"),
    [
        ("81.63", "EUR", 8163),
        ("4120", "EUR", 412000),
        ("500", "JPY", 500),
        ("1500", "MGA", 1500),
        ("1.250", "KWD", 1250),
        ("7", "ISK", 700),
        ("7", "UGX", 700),
        ("123456789.01", "HUF", 12345678901),
    ],
)
def test_an_amount_is_written_with_stripe_s_digits_of_its_currency(
    amount: str, currency: str, units: int
) -> None:
    assert minor_units(Money(amount, currency)) == units


@pytest.mark.parametrize(
    ("amount", "currency"),
    [
        ("0.005", "EUR"),
        ("1.5", "JPY"),
        ("1.001", "KWD"),
        ("7.50", "ISK"),
        ("7.50", "UGX"),
        ("0", "EUR"),
        ("-1", "EUR"),
    ],
)
def test_an_amount_that_stripe_does_not_have_is_refused_and_not_rounded(amount: str, currency: str) -> None:
    with pytest.raises(ToolError, match="Stripe cannot refund"):
        minor_units(Money(amount, currency))


@pytest.mark.parametrize("environ", [{}, {"STRIPE_API_KEY": " "}, {"STRIPE_API_BASE": "nonsense"}])
def test_without_a_key_there_is_no_account(environ: dict[str, str]) -> None:
    assert stripe_account(environ) is None


@pytest.mark.parametrize(
    ("key", "mode"), [("sk_test_1", "test"), ("rk_test_1", "test"), ("sk_live_1", "live"), ("rk_1", "live")]
)
def test_the_key_says_the_mode_and_one_that_does_not_is_taken_for_live(key: str, mode: str) -> None:
    account = stripe_account({"STRIPE_API_KEY": key, "STRIPE_API_BASE": " "})
    assert account == StripeAccount(key, None)
    assert account.mode == mode


def test_the_base_may_end_with_a_slash() -> None:
    account = stripe_account({"STRIPE_API_KEY": "sk_test_1", "STRIPE_API_BASE": "http://127.0.0.1:1/"})
    assert account == StripeAccount("sk_test_1", "http://127.0.0.1:1")


@pytest.mark.parametrize("key", ["pk_test_1", "whsec_1", "sk_test_é", "sk_test_1 2", "sk_test_1\n2"])
def test_what_is_no_secret_key_is_refused_without_being_repeated(key: str) -> None:
    with pytest.raises(ToolError, match="STRIPE_API_KEY is no secret key") as caught:
        stripe_account({"STRIPE_API_KEY": key})
    assert key not in str(caught.value)


@pytest.mark.parametrize("base", ["api.stripe.com", "ftp://host", "http://", "http://[::1", "http://h:0"])
def test_a_base_that_is_no_web_address_is_refused(base: str) -> None:
    with pytest.raises(ToolError, match="STRIPE_API_BASE is not a web address"):
        stripe_account({"STRIPE_API_KEY": "sk_test_1", "STRIPE_API_BASE": base})


@pytest.mark.parametrize("key", ["sk_live_1", "rk_1"])
def test_a_live_key_goes_to_nobody_but_stripe(key: str) -> None:
    with pytest.raises(ToolError, match="a live key is sent to nobody but Stripe"):
        stripe_account({"STRIPE_API_KEY": key, "STRIPE_API_BASE": "https://example.com"})


def test_an_account_does_not_show_its_key() -> None:
    assert "sk_test_1" not in repr(StripeAccount("sk_test_1", None))


@pytest.mark.parametrize(
    ("said", "honoured"), [("", True), (" yes ", True), ("YES", True), ("no", False), ("perhaps", False)]
)
def test_a_provider_honours_keys_unless_something_else_is_said(said: str, honoured: bool) -> None:
    assert honours_keys({"SHOP_PROVIDER_HONOURS_KEYS": said}) is honoured
