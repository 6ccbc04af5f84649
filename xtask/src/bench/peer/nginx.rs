//! nginx as a reference: it forwards HTTP without knowing MCP.

use std::fmt::Write as _;

use anyhow::Result;
use tokio::process::Command;

use super::super::side::{GatewayLaunch, LaunchContext, LaunchPlan};
use super::{Install, Way};

pub(super) const INSTALL: Install =
    Install { name: "nginx", version: "of the system", way: Way::System, program: "/usr/sbin/nginx" };

pub(super) fn plan(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    let Some(program) = INSTALL.program()? else { return Ok(LaunchPlan::Absent("not installed")) };
    if place.searches {
        return Ok(LaunchPlan::Absent("has no search"));
    }
    let Some(upstream) = place.origin.address() else {
        return Ok(LaunchPlan::Absent("needs an upstream over HTTP"));
    };
    let folder = place.folder.display();
    let mut paths = String::new();
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(paths, "{kind}_temp_path {folder}/{kind};");
    }
    let config = format!(
        "daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log crit;
events {{ worker_connections 4096; }}
http {{
{paths}access_log off; keepalive_requests 10000000; client_max_body_size 20m; client_body_buffer_size 2m;
proxy_buffers 64 64k; proxy_buffer_size 64k; proxy_busy_buffers_size 256k;
upstream bench {{ server {upstream}; keepalive 128; keepalive_requests 10000000; }}
server {{ listen {}; location / {{ proxy_pass http://bench; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}
}}
",
        place.listen
    );
    let mut command = Command::new(program);
    command.arg("-c").arg(place.write("nginx.conf", &config)?).arg("-p").arg(place.folder);
    Ok(LaunchPlan::start(GatewayLaunch::new(command, place.front("/mcp"), place)))
}
