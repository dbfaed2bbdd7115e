# The API on a machine with an NVIDIA GPU: docker build -f docker/api-gpu.Dockerfile -t readleaf-api-gpu .
# onnxruntime-gpu 1.31 is built for CUDA 13 and cuDNN 9, which are here; faiss-gpu-cu12 brings its CUDA 12 along.
FROM nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04 AS base
# Ubuntu keeps only the newest patch of a package, so a pinned version is one that cannot be installed next month.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/*

FROM base AS build
WORKDIR /source
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/readleaf
COPY pyproject.toml constraints.txt README.md LICENSE readleaf.py ./
COPY training training
COPY export export
COPY serving serving
COPY ui ui
RUN --mount=type=cache,target=/pip PIP_CACHE_DIR=/pip \
    /opt/readleaf/bin/pip install --constraint constraints.txt ".[serve,gpu,triton]"

FROM base
LABEL org.opencontainers.image.title="Readleaf API, GPU" \
      org.opencontainers.image.description="Reads text in pictures, finds look-alikes, names species; with CUDA or Triton." \
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
    NVIDIA_TF32_OVERRIDE=0 \
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
HEALTHCHECK --interval=10s --timeout=5s --start-period=180s --retries=3 \
    CMD ["python", "/opt/readleaf/share/healthcheck.py", "http://127.0.0.1:8000/health/ready"]
ENTRYPOINT ["python", "/opt/readleaf/share/entrypoint.py"]
