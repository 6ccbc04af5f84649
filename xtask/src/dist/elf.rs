//! Reads from a Linux program which platforms it runs on: processor, and the oldest glibc that has all its symbols.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

/// Libraries that every system with glibc has (PEP 600), and the Debian package of each.
const SYSTEM_LIBRARIES: &[(&str, &str)] = &[
    ("libc.so.6", "libc6"),
    ("libm.so.6", "libc6"),
    ("libdl.so.2", "libc6"),
    ("librt.so.1", "libc6"),
    ("libpthread.so.0", "libc6"),
    ("ld-linux-x86-64.so.2", "libc6"),
    ("ld-linux-aarch64.so.1", "libc6"),
    ("libgcc_s.so.1", "libgcc-s1"),
];

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;

pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) machine: Machine,
    pub(super) libc: Libc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Libc {
    /// Oldest glibc that has all symbols, and the needed libraries.
    Glibc {
        version: (u32, u32),
        libraries: Vec<String>,
    },
    Static,
}

impl Machine {
    /// Name in target triples and wheel tags.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    pub(super) fn npm(self) -> &'static str {
        match self {
            Self::X86_64 => "x64",
            Self::Aarch64 => "arm64",
        }
    }

    pub(super) fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    pub(super) fn is_here(self) -> bool {
        cfg!(target_os = "linux") && std::env::consts::ARCH == self.name()
    }
}

impl Program {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        let (machine, libc) = read(&bytes).with_context(|| path.display().to_string())?;
        Ok(Self { path: path.to_owned(), machine, libc })
    }

    pub(super) fn triple(&self) -> String {
        let libc = if self.libc == Libc::Static { "musl" } else { "gnu" };
        format!("{}-unknown-linux-{libc}", self.machine.name())
    }

    /// Returns the platform tag of a wheel. A static program runs on glibc and on musl.
    pub(super) fn wheel_tag(&self) -> String {
        let machine = self.machine.name();
        match &self.libc {
            Libc::Glibc { version: (major, minor), .. } => format!("manylinux_{major}_{minor}_{machine}"),
            Libc::Static => format!("manylinux_2_17_{machine}.musllinux_1_1_{machine}"),
        }
    }

    /// Returns the Debian packages of the needed libraries, with the version of glibc.
    pub(super) fn debian_dependencies(&self) -> Vec<String> {
        let Libc::Glibc { version: (major, minor), libraries } = &self.libc else { return Vec::new() };
        let package = |name: &String| SYSTEM_LIBRARIES.iter().find(|(library, _)| library == name).map(|found| found.1);
        let mut packages: Vec<&str> = libraries.iter().filter_map(package).collect();
        packages.sort_unstable();
        packages.dedup();
        let versioned = |name: &str| if name == "libc6" { format!("libc6 (>= {major}.{minor})") } else { name.into() };
        packages.into_iter().map(versioned).collect()
    }
}

fn read(bytes: &[u8]) -> Result<(Machine, Libc)> {
    ensure!(bytes.starts_with(b"\x7fELF\x02\x01"), "it is not a 64-bit Linux program");
    let machine = match u16_at(bytes, 18)? {
        62 => Machine::X86_64,
        183 => Machine::Aarch64,
        other => bail!("its processor ({other}) is neither x86_64 nor aarch64"),
    };
    let segments = segments(bytes)?;
    let Some(interpreter) = segments.iter().find(|segment| segment.kind == INTERPRETER) else {
        return Ok((machine, Libc::Static));
    };
    let interpreter = text_at(bytes, interpreter.offset)?;
    ensure!(interpreter.contains("ld-linux"), "it needs {interpreter}; link it with glibc, or statically with musl");
    let image = Image { bytes, segments };
    let dynamic = image.dynamic()?;
    let libraries = dynamic.iter().filter(|entry| entry.0 == 1).map(|entry| image.string(&dynamic, entry.1));
    let libraries = libraries.collect::<Result<Vec<_>>>()?;
    for name in &libraries {
        let is_known = SYSTEM_LIBRARIES.iter().any(|(library, _)| library == name);
        ensure!(is_known, "it needs {name}, which not every Linux has; link it statically");
    }
    let versions = image.versions(&dynamic)?;
    let version = versions.iter().filter_map(|name| glibc(name)).max().context("it names no version of glibc")?;
    Ok((machine, Libc::Glibc { version, libraries }))
}

/// Returns the version in a name like `GLIBC_2.34`.
fn glibc(name: &str) -> Option<(u32, u32)> {
    let (major, minor) = name.strip_prefix("GLIBC_")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

struct Image<'a> {
    bytes: &'a [u8],
    segments: Vec<Segment>,
}

impl Image<'_> {
    /// Returns the entries of the dynamic section: tag and value.
    fn dynamic(&self) -> Result<Vec<(u64, u64)>> {
        let segment = self.segments.iter().find(|segment| segment.kind == DYNAMIC).context("no dynamic section")?;
        let entries = (segment.offset..segment.offset + segment.size).step_by(16);
        entries.map(|at| Ok((u64_at(self.bytes, at)?, u64_at(self.bytes, at + 8)?))).collect()
    }

    fn string(&self, dynamic: &[(u64, u64)], at: u64) -> Result<String> {
        text_at(self.bytes, self.offset(value(dynamic, 5)?)? + at)
    }

    /// Returns the names of all symbol versions that other libraries must have.
    fn versions(&self, dynamic: &[(u64, u64)]) -> Result<Vec<String>> {
        let mut need = self.offset(value(dynamic, 0x6fff_fffe)?)?;
        let mut names = Vec::new();
        for _ in 0..value(dynamic, 0x6fff_ffff)? {
            let mut entry = need + u64::from(u32_at(self.bytes, need + 8)?);
            for _ in 0..u16_at(self.bytes, need + 2)? {
                names.push(self.string(dynamic, u64::from(u32_at(self.bytes, entry + 8)?))?);
                entry += u64::from(u32_at(self.bytes, entry + 12)?);
            }
            need += u64::from(u32_at(self.bytes, need + 12)?);
        }
        Ok(names)
    }

    /// Returns the place in the file of a place in memory.
    fn offset(&self, address: u64) -> Result<u64> {
        let holds = |segment: &&Segment| {
            segment.kind == LOAD && (segment.address..segment.address + segment.size).contains(&address)
        };
        let segment = self.segments.iter().find(holds).context("an address outside of the program")?;
        Ok(address - segment.address + segment.offset)
    }
}

fn segments(bytes: &[u8]) -> Result<Vec<Segment>> {
    let (start, size, count) = (u64_at(bytes, 32)?, u16_at(bytes, 54)?, u16_at(bytes, 56)?);
    let segment = |index: u16| {
        let at = start + u64::from(size) * u64::from(index);
        Ok(Segment {
            kind: u32_at(bytes, at)?,
            offset: u64_at(bytes, at + 8)?,
            address: u64_at(bytes, at + 16)?,
            size: u64_at(bytes, at + 32)?,
        })
    };
    (0..count).map(segment).collect()
}

fn value(dynamic: &[(u64, u64)], tag: u64) -> Result<u64> {
    let found = dynamic.iter().find(|entry| entry.0 == tag);
    found.map(|entry| entry.1).with_context(|| format!("no entry {tag:#x} in the dynamic section"))
}

fn text_at(bytes: &[u8], at: u64) -> Result<String> {
    let rest = bytes.get(usize::try_from(at)?..).context("the file is cut off")?;
    let end = memchr::memchr(0, rest).context("the file is cut off")?;
    Ok(String::from_utf8(rest[..end].to_vec())?)
}

fn array_at<const N: usize>(bytes: &[u8], at: u64) -> Result<[u8; N]> {
    let at = usize::try_from(at)?;
    let part = bytes.get(at..at + N).context("the file is cut off")?;
    Ok(part.try_into()?)
}

fn u16_at(bytes: &[u8], at: u64) -> Result<u16> {
    Ok(u16::from_le_bytes(array_at(bytes, at)?))
}

fn u32_at(bytes: &[u8], at: u64) -> Result<u32> {
    Ok(u32::from_le_bytes(array_at(bytes, at)?))
}

fn u64_at(bytes: &[u8], at: u64) -> Result<u64> {
    Ok(u64::from_le_bytes(array_at(bytes, at)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts_by_number() {
        let newest = ["GLIBC_2.9", "GLIBC_2.34", "GLIBC_2.2.5", "GCC_3.0"].into_iter().filter_map(glibc).max();
        assert_eq!(newest, Some((2, 34)));
    }

    #[test]
    fn what_is_no_program_or_is_cut_off_is_refused() {
        assert!(read(b"#!/bin/sh").is_err());
        assert!(read(b"\x7fELF\x02\x01").is_err());
        let own = fs::read(std::env::current_exe().expect("a path")).expect("a file");
        assert!(read(&own[..60]).is_err());
    }

    #[test]
    fn a_static_program_runs_on_both_kinds_of_linux() {
        let program = Program { path: "x".into(), machine: Machine::X86_64, libc: Libc::Static };
        assert_eq!(program.wheel_tag(), "manylinux_2_17_x86_64.musllinux_1_1_x86_64");
        assert_eq!(program.triple(), "x86_64-unknown-linux-musl");
        assert!(program.debian_dependencies().is_empty());
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn this_test_needs_a_glibc() {
        let own = Program::read(&std::env::current_exe().expect("a path")).expect("a program");
        assert!(own.machine.is_here());
        assert!(own.wheel_tag().starts_with("manylinux_2_"), "{}", own.wheel_tag());
        assert!(own.debian_dependencies().iter().any(|name| name.starts_with("libc6 (>= 2.")));
    }
}
