# syntax=docker/dockerfile:1
#
#   docker build -t hikite .
#   docker run -p 127.0.0.1:7300:7300 -v hikite:/data -v ./config:/etc/hikite:ro hikite
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
    cargo build --locked --release -p hikite \
    && cp target/release/hikite /hikite \
    && strip /hikite \
    && mkdir /empty
# The image has no shell and no curl; this asks /health instead.
COPY <<'RUST' /healthy.rs
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn healthy() -> std::io::Result<bool> {
    let mut stream = TcpStream::connect("127.0.0.1:7300")?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200 "))
}

fn main() {
    std::process::exit(i32::from(!healthy().unwrap_or(false)));
}
RUST
RUN rustc -O -o /healthy /healthy.rs && strip /healthy

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /hikite /healthy /usr/local/bin/
COPY --from=build --chown=65532:65532 /empty /data
USER 65532:65532
WORKDIR /data
# A container's own loopback cannot be reached from outside it, so it listens on every address of the container;
# the token is required there. XDG_CONFIG_HOME makes /etc/hikite/hikite.json the config if it exists.
ENV PATH=/usr/local/bin \
    HIKITE_LISTEN=0.0.0.0:7300 \
    HIKITE_DATA=/data \
    XDG_CONFIG_HOME=/etc
VOLUME /data
EXPOSE 7300
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s CMD ["/usr/local/bin/healthy"]
ENTRYPOINT ["/usr/local/bin/hikite"]
CMD ["serve"]
