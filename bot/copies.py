"""What was pressed shows what holds: a copy is kept up to date, a card for one person alone is spent."""

from bot.blocks.card import spent
from bot.bot import Bot
from bot.payloads import Press
from bot.private import Place
from store import approvals


async def keep_copy(bot: Bot, click: Press, *, decided: bool = False) -> None:
    """Make the message that was pressed a copy of its approval's card, unless it is known as one.

    A known copy whose button should be gone is shown anew, unless the click itself has `decided`. A message
    for one person's eyes is no copy: nobody but an answer to the click could change it.
    """
    if click.channel_id is None or click.message_ts is None or click.is_ephemeral:
        return
    in_dm = click.channel_id.startswith("D")
    await bot.publisher.adopt(
        click.target.approval_id, click.channel_id, click.message_ts, click.user_id if in_dm else None
    )
    if not decided:
        await bot.publisher.doubt(click.channel_id, click.message_ts, click.target)


async def spend_copy(bot: Bot, click: Press) -> None:
    """Take the buttons from a card for one person's eyes that was pressed: nobody can do it later."""
    if not click.is_ephemeral:
        return
    approval = await approvals.read(bot.house.db, click.target.approval_id)
    if approval is not None:
        links = await bot.publisher.links([approval.id])
        card = spent(await bot.publisher.card_of(approval), links.get(approval.id), bot.texts)
        await bot.private.replace(Place.of_click(click), card)
