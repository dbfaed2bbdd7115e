# Triton with our models: docker build -f docker/triton.Dockerfile -t readleaf-triton .
FROM nvcr.io/nvidia/tritonserver:26.06-py3
LABEL org.opencontainers.image.title="Readleaf Triton" \
      org.opencontainers.image.description="Triton Inference Server with Readleaf's model repository." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
# All digits of a number are used, so that answers are those of a CPU.
ENV NVIDIA_TF32_OVERRIDE=0
COPY docker/healthcheck.py /opt/readleaf/share/healthcheck.py
COPY models /models
# The image's own user `triton-server`.
USER 1000:1000
# HTTP, gRPC, metrics. Whoever reaches them may load and unload models: for the API and Prometheus, not for the world.
EXPOSE 8000 8001 8002
HEALTHCHECK --interval=10s --timeout=5s --start-period=180s --retries=3 \
    CMD ["python3", "/opt/readleaf/share/healthcheck.py", "http://127.0.0.1:8000/v2/health/ready"]
CMD ["tritonserver", \
     "--model-repository=/models", \
     "--model-control-mode=explicit", \
     "--load-model=*", \
     "--strict-readiness=true", \
     "--exit-timeout-secs=30", \
     "--http-port=8000", \
     "--grpc-port=8001", \
     "--metrics-port=8002"]
