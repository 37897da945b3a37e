"""Whether there is a model to ask, and whether it takes the key: with a question that costs nothing."""

from agent.model import ModelBusy, ModelError, ModelRefused
from bot.doctor.finding import Finding, failed, ok, warning
from bot.house import make_model
from bot.settings import Settings, SettingsError

CHECK = "model"
SECONDS = 8.0
NOT_FOUND = 404


async def check_model(settings: Settings, named_by_policy: str | None) -> Finding:
    """Whether the key is accepted for the model that the settings or the policy name."""
    try:
        settings.require_model("vistobueno worker")
    except SettingsError as error:
        return failed(CHECK, "there is none to ask", str(error))
    try:
        model = make_model(settings, named_by_policy)
    except ModelRefused as error:
        return failed(CHECK, "it cannot be asked", error.message)
    assert model is not None, "there is a key, or a base URL"
    try:
        await model.try_key(SECONDS)
    except ModelError as error:
        return _failure(error, model.name, own_server=settings.anthropic_base_url is not None)
    finally:
        await model.close()
    return ok(CHECK, f"{model.name} takes the key" if settings.anthropic_api_key else f"{model.name} answers")


def _failure(error: ModelError, name: str, *, own_server: bool) -> Finding:
    if isinstance(error, ModelBusy):
        return warning(
            CHECK,
            f"the key was not tried: {error.message.rstrip('.')}",
            "Check the network, and ANTHROPIC_BASE_URL if it is set, or run this again later.",
        )
    if error.status == NOT_FOUND and own_server:
        return warning(
            CHECK,
            f"the key was not tried: the server of ANTHROPIC_BASE_URL counts no tokens for {name}",
            "If that server has no /v1/messages/count_tokens all is well; else name a model it has.",
        )
    return failed(CHECK, f"{name} cannot be asked", error.message)
