//! The lists of upstream servers on disk, one file per definition, so that they answer at once after a restart
//! and while their server is down.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use hikite_core::json::Raw;
use hikite_core::listing::{ListCache, Listing};

#[derive(Debug)]
pub struct FileListCache {
    folder: PathBuf,
}

impl FileListCache {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, definition: &str) -> PathBuf {
        self.folder.join(format!("{definition}.json"))
    }
}

impl ListCache for FileListCache {
    fn load(&self, definition: &str) -> Option<Listing> {
        let bytes = std::fs::read(self.path(definition)).ok()?;
        let listing = Raw::parse(bytes).ok().and_then(|raw| Listing::from_raw(&raw));
        if listing.is_none() {
            tracing::warn!(definition, "a cached tool list is unreadable and will be fetched again");
        }
        listing
    }

    fn store(&self, definition: &str, listing: &Listing) {
        // Written beside and renamed, so that a reader or a crash never meets half a file.
        let write = || {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let beside = self.folder.join(format!("{definition}.{}.new", std::process::id()));
            std::fs::write(&beside, listing.raw().bytes())?;
            std::fs::rename(&beside, self.path(definition))
        };
        if let Err(error) = write() {
            tracing::warn!(%error, folder = %self.folder.display(), "the tool-list cache cannot be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_found_again_and_a_damaged_one_counts_as_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = FileListCache::new(folder.path().join("lists"));
        assert!(cache.load("abc").is_none());
        let listing = Listing { fetched_at: 5, ..Listing::default() };
        cache.store("abc", &listing);
        assert_eq!(cache.load("abc"), Some(listing));
        std::fs::write(folder.path().join("lists/abc.json"), "{\"format\":1,").expect("write");
        assert!(cache.load("abc").is_none());
    }
}
