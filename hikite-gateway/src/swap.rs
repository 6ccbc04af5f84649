//! A value with many readers and few writers: readers load a consistent snapshot and never wait; writers are
//! serialized. The code is compiled twice: with the real primitives, and in tests with ones whose interleavings can
//! be explored.

mod parts {
    pub(super) use arc_swap::ArcSwap as Published;
    pub(super) use parking_lot::Mutex;
}

mod body;
pub(crate) use body::Swap;

#[cfg(test)]
mod interleaving;
