# An image for `litebert serve`, on CPU: docs/deploy.md says how to run it. Models are mounted, not copied.
#   docker build -t litebert .
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/litebert
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY litebert ./litebert
RUN /opt/litebert/bin/pip install --no-cache-dir --constraint constraints.txt \
        --extra-index-url https://download.pytorch.org/whl/cpu ".[serve,export]"

FROM python:3.12-slim-bookworm
COPY --from=build /opt/litebert /opt/litebert
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin litebert
# The root file system may be read-only: what is cached goes to /tmp, mount a tmpfs there.
ENV PATH=/opt/litebert/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    LITEBERT_CACHE=/tmp/litebert
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["litebert", "serve"]
CMD ["--help"]
