//! `ContextForge`: servers are registered over its API and stored in its database; calls carry a JWT that it issues. It
//! has no stdio servers.

use std::process::Command as Plain;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::process::Command;

use super::super::side::{GatewayLaunch, LaunchContext, LaunchPlan, UpstreamKind};
use super::{Install, Way};

pub(super) const INSTALL: Install = Install {
    name: "contextforge",
    version: "1.0.7.post20260921",
    way: Way::Python("mcp-contextforge-gateway"),
    program: "bin/mcpgateway",
};

const USER: &str = "admin@example.com";
/// JWT secret; it protects nothing but a benchmark.
const SECRET: &str = "a-secret-of-a-benchmark-that-is-long-enough-0001";
const SETTINGS: &[(&str, &str)] = &[
    ("JWT_SECRET_KEY", SECRET),
    ("AUTH_ENCRYPTION_SECRET", "a-secret-of-a-benchmark-that-is-long-enough-0002"),
    ("BASIC_AUTH_PASSWORD", "Bench-Passw0rd-1"),
    ("PLATFORM_ADMIN_EMAIL", USER),
    ("PLATFORM_ADMIN_PASSWORD", "Bench-Passw0rd-1"),
    ("DEFAULT_USER_PASSWORD", "Bench-Passw0rd-1"),
    ("DATABASE_URL", "sqlite:///./mcp.db"),
    ("CACHE_TYPE", "memory"),
    ("LOG_LEVEL", "ERROR"),
    ("MCPGATEWAY_UI_ENABLED", "false"),
    ("MCPGATEWAY_ADMIN_API_ENABLED", "false"),
    ("SSRF_ALLOW_LOCALHOST", "true"),
    ("RATE_LIMITING_ENABLED", "false"),
    ("VALIDATION_MAX_REQUESTS_PER_MINUTE", "100000000"),
    ("TOOL_RATE_LIMIT", "100000000"),
];

pub(super) fn plan(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    let Some(program) = INSTALL.program()? else { return Ok(LaunchPlan::Absent("not installed")) };
    if place.searches {
        return Ok(LaunchPlan::Absent("has no search"));
    }
    let Some(url) = place.origin.url().filter(|_| place.origin.kind != UpstreamKind::None) else {
        return Ok(LaunchPlan::Absent("needs an upstream over HTTP"));
    };
    let mut command = Command::new(program);
    command.args(["--host", "127.0.0.1", "--port", &place.listen.port().to_string()]);
    command.current_dir(place.folder).envs(SETTINGS.iter().copied());
    let gateway = json!({ "name": "bench", "url": url, "transport": "STREAMABLEHTTP" });
    let launch = GatewayLaunch::new(command, place.front("/mcp"), place);
    Ok(LaunchPlan::start(GatewayLaunch {
        token: Some(token(place)?),
        register: Some(("/gateways", gateway.to_string())),
        ..launch
    }))
}

/// Returns the token, created once per folder because that takes seconds.
fn token(place: &LaunchContext<'_>) -> Result<String> {
    let file = place.folder.join("token");
    if let Ok(token) = std::fs::read_to_string(&file) {
        return Ok(token);
    }
    let output = Plain::new(INSTALL.folder()?.join("bin/python"))
        .args(["-m", "mcpgateway.utils.create_jwt_token", "--username", USER, "--exp", "10080"])
        .args(["--secret", SECRET])
        .current_dir(place.folder)
        .envs(SETTINGS.iter().copied())
        .output()?;
    ensure!(output.status.success(), "ContextForge makes no token");
    let text = String::from_utf8(output.stdout)?;
    let token = text.lines().rev().find(|line| line.starts_with("ey")).context("no token in its answer")?;
    std::fs::write(file, token)?;
    Ok(token.to_owned())
}
