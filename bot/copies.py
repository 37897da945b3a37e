"""A card that was posted though nobody heard of it: once it is pressed, it is kept up to date like others."""

from bot.bot import Bot
from bot.payloads import Press


async def adopt_copy(bot: Bot, click: Press) -> None:
    """Make the message that was pressed a copy of its approval's card, unless it is known as one.

    A message for one person's eyes is none: nobody but an answer to the click could change it.
    """
    if click.channel_id is None or click.message_ts is None or click.is_ephemeral:
        return
    in_dm = click.channel_id.startswith("D")
    await bot.publisher.adopt(
        click.target.approval_id, click.channel_id, click.message_ts, click.user_id if in_dm else None
    )
