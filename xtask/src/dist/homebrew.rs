//! The Homebrew formula. It installs the tarballs; there are programs for Linux only.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::elf::{Libc, Machine, Program};
use super::product::Product;
use super::{digest, fill};

pub(super) fn make(product: &Product, programs: &[Program], out: &Path) -> Result<()> {
    let mut platforms = String::new();
    for machine in [Machine::X86_64, Machine::Aarch64] {
        let of_machine = || programs.iter().filter(|program| program.machine == machine);
        // A static program runs with every glibc.
        let Some(program) = of_machine().find(|program| program.libc == Libc::Static).or_else(|| of_machine().next())
        else {
            continue;
        };
        let word = if machine == Machine::X86_64 { "intel" } else { "arm" };
        let file = format!("{}.tar.gz", product.archive(&program.triple()));
        let (download, digest) = (&product.download, digest(&out.join(&file))?);
        writeln!(platforms, "  on_{word} do\n    url \"{download}/{file}\"\n    sha256 \"{digest}\"\n  end\n")?;
    }
    let class = product.name[..1].to_uppercase() + &product.name[1..];
    let license = product.license.split(" OR ").map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let more = [("@CLASS@", class.as_str()), ("@LICENSES@", &license), ("@PLATFORMS@", platforms.trim())];
    let formula = fill(include_str!("homebrew.rb"), product, &more)?;
    Ok(fs::write(out.join(format!("{}.rb", product.name)), formula)?)
}
