//! The address that hikite listens on, and who has it if it is taken.

use std::fs;
use std::net::SocketAddr;

use hikite_config::Config;
use tokio::net::TcpListener;

use super::{DoctorFinding, FindingLevel};

pub(super) async fn finding(config: &Config) -> DoctorFinding {
    let listen = config.server.listen;
    let Err(error) = TcpListener::bind(listen).await else {
        return DoctorFinding::good("listen", format!("{listen} is free"));
    };
    let port = listen.port();
    match listening_process(port) {
        Some(process) if process.name == "hikite" => {
            DoctorFinding::good("listen", format!("hikite runs at {listen} (process {})", process.pid))
        }
        owner => DoctorFinding {
            what: "listen".into(),
            level: FindingLevel::Warning,
            text: match &owner {
                Some(owner) => format!("{listen} is taken by `{}` (process {})", owner.name, owner.pid),
                None => format!("{listen}: {error}"),
            },
            hint: Some(match owner {
                Some(owner) => format!(
                    "Stop it with `kill {}`, or choose another address: `hikite serve --listen {}`.",
                    owner.pid,
                    SocketAddr::new(listen.ip(), port.checked_add(1).unwrap_or(7300))
                ),
                None => format!("`lsof -i :{port}` names its owner. Or choose another address with `--listen`."),
            }),
        },
    }
}

/// A process that listens on a port.
pub(in crate::cli) struct PortOwner {
    pub(in crate::cli) pid: u32,
    pub(in crate::cli) name: String,
}

/// Returns the process that listens on a port, where the system has `/proc` and lets us read it.
pub(in crate::cli) fn listening_process(port: u16) -> Option<PortOwner> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let inode = tables.iter().flat_map(|table| table.lines().skip(1)).find_map(|line| inode(line, port))?;
    let socket = format!("socket:[{inode}]");
    let pids = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = pids.find(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|target| target.to_str() == Some(&socket))
    })?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(PortOwner { pid, name: name.trim().to_owned() })
}

/// Returns the socket of a line of the kernel's table, if it listens on the port.
fn inode(line: &str, port: u16) -> Option<&str> {
    const LISTENING: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, found) = fields.get(1)?.rsplit_once(':')?;
    let is_ours = u16::from_str_radix(found, 16) == Ok(port) && *fields.get(3)? == LISTENING;
    is_ours.then_some(*fields.get(9)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_socket_is_found_in_the_table_of_the_kernel() {
        let line =
            "   0: 0100007F:1C84 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 x";
        assert_eq!(inode(line, 7300), Some("4711"));
        assert_eq!(inode(line, 7301), None);
        assert_eq!(inode(&line.replace(" 0A ", " 01 "), 7300), None, "a connection does not take the port");
    }

    #[tokio::test]
    async fn the_owner_of_a_port_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let owner = listening_process(listener.local_addr().expect("an address").port());
        assert_eq!(owner.map(|owner| owner.pid), Some(std::process::id()));
    }
}
