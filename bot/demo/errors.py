"""What can go wrong in the demo."""


class DemoFailed(Exception):
    """The demo could not be shown, or a fact of its story does not hold; the text is one sentence."""
