# syntax=docker/dockerfile:1
#
# Two images from one static program:
#
#   docker build -t hikite .                        remote servers only: no shell, no Node, no Python
#   docker build -t hikite:full --target full .     Node, Python and uv for `npx`, `uvx` and other stdio servers
#
#   docker run -p 127.0.0.1:7300:7300 -e HIKITE_PUBLIC_URL=http://localhost:7300 \
#       -v hikite:/data -v ./config:/etc/hikite:ro hikite
#
# The config is /etc/hikite/hikite.json, if there is one. See docs/configuration.md, "Containers".

FROM rust:1-alpine AS build
# aws-lc-sys compiles C with the compiler alone (no CMake, no bindgen on x86_64 and aarch64), and wants the
# kernel's headers. On Alpine the target is musl, so the result is static.
RUN apk add --no-cache gcc musl-dev linux-headers ca-certificates
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist -p hikite \
    && cp target/dist/hikite /hikite \
    && mkdir /empty

FROM node:22-slim AS full
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY --from=ghcr.io/astral-sh/uv:0.9 /uv /uvx /usr/local/bin/
COPY --from=build /hikite /usr/local/bin/hikite
COPY --from=build --chown=65532:65532 /empty /data
USER 65532:65532
WORKDIR /data
# The caches of `npx` and `uvx` are in the volume, too.
ENV HOME=/data \
    HOST=0.0.0.0 \
    HIKITE_DATA=/data \
    XDG_CONFIG_HOME=/etc
VOLUME /data
EXPOSE 7300
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s CMD ["/usr/local/bin/hikite", "health"]
ENTRYPOINT ["/usr/local/bin/hikite"]
CMD ["serve"]

FROM scratch AS hikite
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /hikite /usr/local/bin/hikite
COPY --from=build --chown=65532:65532 /empty /data
USER 65532:65532
WORKDIR /data
# A container's own loopback cannot be reached from outside it, so hikite listens on every address of the container, at
# PORT (7300). It then refuses to start without HIKITE_PUBLIC_URL: the https address of the proxy in front of it, or
# http://localhost:7300 if the port is published on this machine only.
# XDG_CONFIG_HOME makes /etc/hikite/hikite.json the config if it exists.
ENV PATH=/usr/local/bin \
    HOST=0.0.0.0 \
    HIKITE_DATA=/data \
    XDG_CONFIG_HOME=/etc
VOLUME /data
EXPOSE 7300
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s CMD ["/usr/local/bin/hikite", "health"]
ENTRYPOINT ["/usr/local/bin/hikite"]
CMD ["serve"]
