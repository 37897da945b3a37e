"""compose.yaml and Dockerfile, which no test can run: they name only what there is, and show little."""

import re
import tomllib
from typing import Any

import pytest
import yaml

from bot.settings import Settings
from store.engine import sqlalchemy_url
from tests.unit.test_documents import complaint
from tests.unit.test_project_files import ROOT, VARIABLES, read

OURS = ["migrate", "web", "worker"]
RUN_ON = {"database", "web", "worker"}
GRACE_SECONDS = 10  # what a process that is asked to end takes at most


@pytest.fixture
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(read("compose.yaml"))
    return loaded


@pytest.fixture
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = compose["services"]
    return found


def test_it_has_a_database_and_the_processes_of_the_procfile(services: dict[str, Any]) -> None:
    assert list(services) == ["database", *OURS]
    procfile = {tuple(line.split(": ")[1].split()) for line in read("Procfile").splitlines()}
    assert {tuple(services[name]["command"][:2]) for name in OURS} == procfile


@pytest.mark.parametrize("name", OURS)
def test_every_command_and_variable_of_a_service_exists(services: dict[str, Any], name: str) -> None:
    assert complaint(services[name]["command"]) is None
    assert set(services[name]["environment"]) <= set(VARIABLES)


@pytest.mark.parametrize("name", OURS)
def test_a_service_reads_dot_env_but_for_the_database(services: dict[str, Any], name: str) -> None:
    service, database = services[name], services["database"]["environment"]
    assert service["env_file"] == ".env"
    settings = Settings.read(service["environment"])
    assert settings.database_owner_url is None
    url = sqlalchemy_url(settings.database_url or "")
    assert (url.host, url.port) == ("database", 5432)
    assert url.username == database["POSTGRES_USER"]
    assert url.password == database["POSTGRES_PASSWORD"]
    assert url.database == database["POSTGRES_DB"]


def test_the_tables_are_made_after_the_database_answers_and_before_anything_runs(
    services: dict[str, Any],
) -> None:
    waits = {name: service.get("depends_on", {}) for name, service in services.items()}
    done = {"migrate": {"condition": "service_completed_successfully"}}
    assert waits == {
        "database": {},
        "migrate": {"database": {"condition": "service_healthy"}},
        "web": done,
        "worker": done,
    }
    assert services["database"]["healthcheck"]["test"][0] == "CMD"


def test_what_ends_is_started_again_and_is_given_time_to_end(services: dict[str, Any]) -> None:
    assert {name for name in services if services[name].get("restart") == "unless-stopped"} == RUN_ON
    for name in ("web", "worker"):
        assert int(services[name]["stop_grace_period"].removesuffix("s")) > GRACE_SECONDS


def test_only_web_is_reached_and_only_from_this_machine(services: dict[str, Any]) -> None:
    ports = {name: service["ports"] for name, service in services.items() if "ports" in service}
    port = services["web"]["environment"]["PORT"]
    assert ports == {"web": [f"127.0.0.1:{port}:{port}"]}
    assert services["web"]["command"][2:] == ["--host", "0.0.0.0"]
    assert f"http://127.0.0.1:{port}/healthz" in services["web"]["healthcheck"]["test"][-1]


def test_the_check_of_web_is_python_that_can_be_read(services: dict[str, Any]) -> None:
    kind, program, flag, code = services["web"]["healthcheck"]["test"]
    assert (kind, program, flag) == ("CMD", "python", "-c")
    compile(code, "healthcheck", "exec")


def test_the_data_outlives_the_database(compose: dict[str, Any], services: dict[str, Any]) -> None:
    [volume] = services["database"]["volumes"]
    assert volume == "database:/var/lib/postgresql/data"
    assert list(compose["volumes"]) == ["database"]


def test_the_image_has_the_locked_versions_and_an_ordinary_user() -> None:
    lines = read("Dockerfile").splitlines()
    [python] = re.findall(r"^FROM python:(\d+\.\d+)-", read("Dockerfile"), re.MULTILINE)
    assert tomllib.loads(read("pyproject.toml"))["project"]["requires-python"] == f">={python}"
    [install] = [line for line in lines if "requirements.lock" in line and line.startswith("RUN")]
    assert "--require-hashes" in install
    assert "--only-binary :all:" in install
    assert lines.index("USER vistobueno") > max(at for at, line in enumerate(lines) if line.startswith("RUN"))


def test_the_image_is_made_without_secrets_and_without_what_was_built() -> None:
    left_out = set(read(".dockerignore").splitlines())
    assert {".env", ".git", ".venv"} <= left_out
    assert not {"bot", "agent", "store", "policy.toml", "README.md", "pyproject.toml"} & left_out
    assert (ROOT / "README.md").exists()  # which the build reads: pyproject.toml names it
