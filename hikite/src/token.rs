//! The local token: created on first start and readable only by its owner.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hikite_core::hex::hex;
use hikite_core::secret::Secret;

/// Reads `<data>/token`, or creates it.
pub(crate) fn local_token(data: &Path) -> Result<Secret> {
    make_folder(data)?;
    private(&path(data), || Ok(Secret::hidden(random()?)))
}

/// Reads a file that only its owner can read, or creates it.
pub(crate) fn private(path: &Path, make: impl FnOnce() -> Result<Secret>) -> Result<Secret> {
    if path.exists() {
        return read(path);
    }
    let fresh = make()?;
    match write(path, &fresh) {
        Ok(()) => Ok(fresh),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(error).with_context(|| format!("cannot write `{}`", path.display())),
    }
}

/// Writes a temporary file and links it to its name, unless another process was first. Readers never see a partial
/// file.
fn write(path: &Path, secret: &Secret) -> io::Result<()> {
    let number = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
    let beside = path.with_extension(format!("{number:x}.new"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = writeln!(file, "{}", secret.expose()).and_then(|()| file.sync_all());
    let named = written.and_then(|()| match fs::hard_link(&beside, path) {
        // Some file systems have no hard links.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => fs::rename(&beside, path),
        named => named,
    });
    // After the rename it no longer exists.
    let _ = fs::remove_file(&beside);
    named
}

pub(crate) fn path(data: &Path) -> PathBuf {
    data.join("token")
}

pub(crate) fn make_folder(data: &Path) -> Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(data).with_context(|| {
        format!("cannot create the data folder `{}`\nhint: Choose another one with `--data`.", data.display())
    })
}

fn read(path: &Path) -> Result<Secret> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{shown}`"))?;
    let others = fs::metadata(path)?.permissions().mode() & 0o077;
    if others != 0 {
        bail!("`{shown}` is readable by others.\nhint: Run `chmod 600 {shown}`.");
    }
    let token = text.trim();
    if token.len() < 16 {
        bail!("`{shown}` contains no usable token.\nhint: Restore it, or delete it to get a new one.");
    }
    Ok(Secret::hidden(token))
}

/// Returns 256 random bits.
pub(crate) fn random_key() -> Result<[u8; 32]> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).context("the operating system returned no random bytes")?;
    Ok(bytes)
}

fn random() -> Result<String> {
    Ok(format!("hk_local_{}", hex(&random_key()?)))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn the_token_is_made_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let token = local_token(&data).expect("made");
        assert_eq!(local_token(&data).expect("read"), token);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&path(&data)), mode(&data)), (0o600, 0o700));
    }

    #[test]
    fn whoever_starts_at_the_same_time_finds_the_same_token() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let start = Barrier::new(8);
        let tokens: Vec<Secret> = std::thread::scope(|scope| {
            let make = || {
                start.wait();
                local_token(&data).expect("made or read")
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(tokens.iter().all(|token| *token == tokens[0]));
        assert_eq!(fs::read_dir(&data).expect("a folder").count(), 1);
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        local_token(folder.path()).expect("made");
        fs::set_permissions(path(folder.path()), fs::Permissions::from_mode(0o644)).expect("changed");
        let error = local_token(folder.path()).expect_err("refused").to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }
}
