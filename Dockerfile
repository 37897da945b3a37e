# vistobueno and the tools in this folder, at the locked versions; compose.yaml uses it.
FROM python:3.11-slim-bookworm

WORKDIR /app
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes --only-binary :all: --requirement requirements.lock
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable .

RUN useradd --create-home vistobueno
USER vistobueno
CMD ["vistobueno", "--help"]
