//! Writes a linker script from `order.txt` that groups the functions used at start-up and those used by calls. This
//! lowers resident memory and page faults per call. `cargo xtask order` generates the list.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=order.txt");
    if env::var("PROFILE").as_deref() != Ok("release") || !has_usual_linker() {
        return Ok(());
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let script = folder.join("order.ld");
    fs::write(&script, script_of(&fs::read_to_string("order.txt")?))?;
    println!("cargo::rustc-link-arg-bins=-T{}", script.display());
    Ok(())
}

/// Returns `true` if the linker is the default one of Linux, which reads such scripts; a custom linker may not.
fn has_usual_linker() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_chosen = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") && !is_chosen
}

/// Builds a linker script with one section before `.text` for each part of the list. A part starts with its name in
/// brackets.
fn script_of(list: &str) -> String {
    let sections: Vec<String> = list.split("\n[").skip(1).filter_map(section_of).collect();
    format!("SECTIONS\n{{\n{}}}\nINSERT BEFORE .text;\n", sections.concat())
}

fn section_of(part: &str) -> Option<String> {
    let (name, functions) = part.split_once("]\n")?;
    // The compiler puts functions it considers cold into `.text.unlikely`.
    let lines = functions.lines().map(|name| format!("    *(.text.{name} .text.unlikely.{name})\n"));
    Some(format!("  .text.{name} :\n  {{\n{}  }}\n", lines.collect::<Vec<_>>().concat()))
}
