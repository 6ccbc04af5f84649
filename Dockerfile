# syntax=docker/dockerfile:1
#
#   docker build -t hikite .
#   docker run -p 127.0.0.1:7300:7300 -e HIKITE_PUBLIC_URL=https://hikite.example \
#       -v hikite:/data -v ./config:/etc/hikite:ro hikite
#
# The config is /etc/hikite/hikite.json, if there is one. See docs/configuration.md, "In a container".

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

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /hikite /usr/local/bin/hikite
COPY --from=build --chown=65532:65532 /empty /data
USER 65532:65532
WORKDIR /data
# A container's own loopback cannot be reached from outside it, so it listens on every address of the container.
# It then refuses to start without HIKITE_PUBLIC_URL, the https address of the proxy in front of it.
# XDG_CONFIG_HOME makes /etc/hikite/hikite.json the config if it exists.
ENV PATH=/usr/local/bin \
    HIKITE_LISTEN=0.0.0.0:7300 \
    HIKITE_DATA=/data \
    XDG_CONFIG_HOME=/etc
VOLUME /data
EXPOSE 7300
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s CMD ["/usr/local/bin/hikite", "health"]
ENTRYPOINT ["/usr/local/bin/hikite"]
CMD ["serve"]
