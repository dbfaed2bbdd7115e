# The page, a client of an API elsewhere: docker build -f docker/ui.Dockerfile -t readleaf-ui .
FROM python:3.11.15-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/readleaf
COPY pyproject.toml constraints.txt README.md LICENSE readleaf.py ./
COPY training training
COPY export export
COPY serving serving
COPY ui ui
RUN --mount=type=cache,target=/pip PIP_CACHE_DIR=/pip \
    /opt/readleaf/bin/pip install --constraint constraints.txt ".[ui]"

FROM python:3.11.15-slim-bookworm
LABEL org.opencontainers.image.title="Readleaf page" \
      org.opencontainers.image.description="The page of Readleaf, in front of its API." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
# A new volume takes the owner of the folder it is mounted on.
RUN useradd --uid 10001 --no-log-init --no-create-home --shell /usr/sbin/nologin readleaf \
    && install --directory --owner=readleaf --group=readleaf /data
COPY --from=build /opt/readleaf /opt/readleaf
COPY docker/healthcheck.py /opt/readleaf/share/healthcheck.py
ENV PATH=/opt/readleaf/bin:$PATH \
    GRADIO_ANALYTICS_ENABLED=False \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    READLEAF_DATA_DIR=/data
WORKDIR /data
VOLUME /data
USER 10001:10001
EXPOSE 8000
# Asked through the page, so it is healthy when both are.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "/opt/readleaf/share/healthcheck.py", "http://127.0.0.1:8000/health/ready"]
ENTRYPOINT ["readleaf", "page", "--host", "0.0.0.0", "--port", "8000"]
CMD ["--api", "http://api:8000"]
