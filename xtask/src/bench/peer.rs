//! Other gateways and proxies from their registries, with default settings except for lifted rate limits. They are
//! installed into their own folder, never during a run, which cuts them off from every network but loopback.

mod context_forge;
mod fastmcp;
mod install;
mod mcp_gateway;
mod mcp_proxy;
mod modular;
mod nginx;
mod python_proxy;

pub(super) use install::{Install, Way, install};

use super::side::{GatewayRole, GatewayUnderTest, LaunchContext, LaunchPlan};

pub(super) fn all() -> Vec<GatewayUnderTest> {
    vec![
        peer("FastMCP proxy", fastmcp::INSTALL, true, fastmcp::plan),
        peer("mcp-proxy (PyPI)", python_proxy::INSTALL, true, python_proxy::plan),
        peer("ContextForge", context_forge::INSTALL, true, context_forge::plan),
        peer("mcp-proxy (Rust)", mcp_proxy::INSTALL, false, mcp_proxy::plan),
        peer("mcp-gateway (Rust)", mcp_gateway::INSTALL, false, mcp_gateway::plan),
        peer("modular-mcp", modular::INSTALL, true, modular::plan),
        GatewayUnderTest { role: GatewayRole::Reference, ..peer("nginx", nginx::INSTALL, false, nginx::plan) },
    ]
}

fn peer(
    name: &'static str,
    install: Install,
    is_slow: bool,
    plan: fn(&LaunchContext<'_>) -> anyhow::Result<LaunchPlan>,
) -> GatewayUnderTest {
    GatewayUnderTest { name, role: GatewayRole::Peer, is_slow, install: Some(install), plan }
}
