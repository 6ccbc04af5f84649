//! MCP log levels, from most to least verbose.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogLevel(u8);

const NAMES: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl LogLevel {
    pub fn parse(name: &str) -> Option<Self> {
        (0..).zip(NAMES).find(|(_, known)| *known == name).map(|(rank, _)| Self(rank))
    }

    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    pub fn rank(self) -> u8 {
        self.0
    }
}
