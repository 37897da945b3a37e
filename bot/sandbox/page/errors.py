"""What the page cannot do, each as one sentence and a status."""


class PageError(Exception):
    """A request that is not done; `status` is HTTP's, the text a sentence for the person."""

    status = 400


class NotThereError(PageError):
    """An id in the address names nothing this person can see."""

    status = 404


class NoLongerError(PageError):
    """What was on the screen has changed meanwhile, or Slack does not let this person do it."""

    status = 409


class CrossSiteError(PageError):
    """The request comes from another site's page."""

    status = 403
