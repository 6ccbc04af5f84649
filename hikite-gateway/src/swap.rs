//! What many read and few replace: readers take the whole of one moment and never wait; replacers take turns. The
//! code is compiled twice: over the real parts, and in tests over parts whose every interleaving can be tried.

mod parts {
    pub(super) use arc_swap::ArcSwap as Shown;
    pub(super) use parking_lot::Mutex;
}

mod body;
pub(crate) use body::Swap;

#[cfg(test)]
mod tried;
