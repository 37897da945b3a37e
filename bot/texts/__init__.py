"""What people read, by language: one file a language, all with the same sentences."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from babel import Locale, UnknownLocaleError

from bot.texts.en import ENGLISH
from bot.texts.words import Texts

__all__ = ["LANGUAGES", "Texts", "texts"]

LANGUAGES: Mapping[str, Texts] = MappingProxyType({"en": ENGLISH})


def texts(locale: str = "en") -> Texts:
    """The words for `locale` ("en", "en_GB" or "en-GB"); English where there is no such language.

    Numbers, amounts and times follow the whole locale where the words do, so that a sentence is never mixed.
    """
    try:
        found = Locale.parse(locale.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        return ENGLISH
    language = LANGUAGES.get(found.language)
    return replace(language, locale=str(found)) if language else ENGLISH
