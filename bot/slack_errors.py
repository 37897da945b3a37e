"""What ends a command when Slack does not let it in; apart from its client, which takes a while to load."""


class SlackRefusedToken(Exception):
    """Slack does not take the bot's token, or the app's; the text says what to do."""


class SlackUnreachable(Exception):
    """Nothing that speaks for Slack answered; the text says what to do.

    `retry_after` is the seconds that Slack asks to wait, if it does.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)
