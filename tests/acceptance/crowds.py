"""Policy files of a test's own, and the many approvers that one names: in Slack, and in the directory."""

from collections.abc import Mapping
from pathlib import Path

from bot.sandbox import Person
from store import directory
from store.records import DirectoryUser
from tests.acceptance.stage import ROOT, Stage


def crowd_policy(folder: Path, people: int, quorum: int = 1) -> Path:
    """The shop's policy with so many support leads."""
    users = ", ".join(f'"{user_id(number)}"' for number in range(people))
    return changed_policy(
        folder,
        {'users = ["U0MARTA"]': f'users = ["U0MARTA", {users}]', "quorum = 1 ": f"quorum = {quorum} "},
    )


def changed_policy(folder: Path, changes: Mapping[str, str]) -> Path:
    """A copy of the shop's policy in which these texts, each there once, are replaced."""
    text = (ROOT / "policy.toml").read_text()
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "instructions.md").write_text((ROOT / "instructions.md").read_text())
    path = folder / "policy.toml"
    path.write_text(text)
    return path


async def crowd(stage: Stage, people: int) -> list[Person]:
    """The people of that policy; their directory rows are young, so Slack need not be asked about them."""
    made = [
        stage.sandbox.add_person(user_id(number), f"Lead {number}", channels=["C0APPROVALS"])
        for number in range(people)
    ]
    for person in made:
        row = DirectoryUser("T0SHOP", person.id, person.user.real_name, False, False, False, False, 0.0)
        await directory.save_user(stage.db, row)
    return made


def user_id(number: int) -> str:
    """The id of one of them."""
    return f"U0LEAD{number:02}"
