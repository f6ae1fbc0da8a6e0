# Millrace with an embedded PostgreSQL. `npm run image` prepares what is copied here; the build needs no network.
#
#   npm ci && npm run image && docker build --tag millrace .
#   docker run --init --read-only --tmpfs /tmp --publish 127.0.0.1:8080:8080 --volume millrace:/var/lib/millrace millrace
#
# docs/deployment.md describes roles, settings and volumes.

ARG BASE=node:22-bookworm-slim
FROM ${BASE}

LABEL org.opencontainers.image.title="Millrace" \
      org.opencontainers.image.description="A job scheduler, workflow engine and event bus in one" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="0.2.0"

# A fixed number, so that volumes and manifests can name it; an account, because PostgreSQL looks its user up.
RUN groupadd --gid 10001 millrace \
 && useradd --uid 10001 --gid millrace --home-dir /var/lib/millrace --no-create-home --shell /usr/sbin/nologin millrace \
 && mkdir --mode 700 /var/lib/millrace \
 && chown millrace:millrace /var/lib/millrace \
 && ln -s /opt/millrace/dist/main.js /usr/local/bin/millrace

COPY image/millrace /opt/millrace

# Below the top of the volume: a volume of Kubernetes belongs to root, and the home must belong to its user.
ENV MILLRACE_HOME=/var/lib/millrace/home \
    MILLRACE_HOST=0.0.0.0

USER 10001:10001
WORKDIR /var/lib/millrace
VOLUME /var/lib/millrace
EXPOSE 8080

# Of `up` and, with MILLRACE_URL, of `api` and `worker`. The other roles serve nothing that could be asked: --no-healthcheck.
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s CMD ["millrace", "health"]

# The process itself is PID 1 and receives SIGTERM: no shell stands between.
ENTRYPOINT ["node", "/opt/millrace/dist/main.js"]
CMD ["up"]
