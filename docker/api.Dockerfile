# The API on a CPU. From the root of the checkout: docker build -f docker/api.Dockerfile -t readleaf-api .
FROM python:3.11.15-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/readleaf
COPY pyproject.toml constraints.txt README.md LICENSE readleaf.py ./
COPY training training
COPY export export
COPY serving serving
COPY ui ui
RUN --mount=type=cache,target=/pip PIP_CACHE_DIR=/pip \
    /opt/readleaf/bin/pip install --constraint constraints.txt ".[serve,cpu]"

FROM python:3.11.15-slim-bookworm
LABEL org.opencontainers.image.title="Readleaf API" \
      org.opencontainers.image.description="Reads text in pictures, finds look-alikes, names species; on a CPU." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
# A new volume takes the owner of the folder it is mounted on.
RUN useradd --uid 10001 --no-log-init --no-create-home --shell /usr/sbin/nologin readleaf \
    && install --directory --owner=readleaf --group=readleaf /data /keys
COPY models /models
COPY --from=build /opt/readleaf /opt/readleaf
COPY docker/entrypoint.py docker/healthcheck.py /opt/readleaf/share/
ENV PATH=/opt/readleaf/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    READLEAF_DATA_DIR=/data \
    READLEAF_HOST=0.0.0.0 \
    READLEAF_LOG_FORMAT=json \
    READLEAF_MODELS_DIR=/models \
    READLEAF_PORT=8000 \
    READLEAF_UI=false
WORKDIR /data
VOLUME /data
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "/opt/readleaf/share/healthcheck.py", "http://127.0.0.1:8000/health/ready"]
ENTRYPOINT ["python", "/opt/readleaf/share/entrypoint.py"]
