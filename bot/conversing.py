"""From a person's message to a run: durable before Slack is answered, or refused with a sentence."""

from agent.start import TaskEmpty, TaskTooLong, start_run
from bot import replies
from bot.after import AfterAnswer
from bot.blocks.bounded import Message
from bot.bot import Bot
from bot.identity import Nobody
from bot.payloads import DirectMessage, Mention
from bot.private import Place
from store.records import Actor

# A guest may ask, though not decide; when Slack is slow to say who it is, the signed event says enough.
MAY_ASK = frozenset({"guest", "unreachable"})


async def begin_run(bot: Bot, message: Mention | DirectMessage, after: AfterAnswer) -> None:
    """Store the run that a message asks for; the same event, delivered again, is the same run."""
    who = await bot.directory.person(message.user_team_id, message.user_id)
    if isinstance(who, Nobody) and who.why not in MAY_ASK:
        after.do(_tell, bot, message, replies.not_for_you(bot.texts))
        return
    requester = Actor("person", message.user_team_id, message.user_id, who.name or message.user_id)
    try:
        await start_run(
            bot.clicks,
            team_id=message.team_id,
            channel_id=message.channel_id,
            thread_ts=message.thread_ts or message.ts,
            requester=requester,
            text=message.text,
            source_key=f"event:{message.event_id}",
        )
    except TaskTooLong as error:
        after.do(_tell, bot, message, replies.task_too_long(error.limit, bot.texts))
    except TaskEmpty:
        after.do(_tell, bot, message, replies.task_empty(bot.texts))
    else:
        bot.publishing.call()


async def _tell(bot: Bot, message: Mention | DirectMessage, sentence: Message) -> None:
    key = (message.event_id,)
    await bot.private.tell(Place(message.user_id, message.channel_id, message.thread_ts, None, key), sentence)
