//! `${id.path}`: the result of another task, or a part of it.
